// Package disk implements the resource virtclaim_disk: local content on one host, created from any volume or blank.
package disk

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The default timeouts. A clone may be large, and so may a disk that goes to another host.
const (
	createTimeout = 60 * time.Minute
	readTimeout   = 2 * time.Minute
	updateTimeout = 60 * time.Minute
	deleteTimeout = 10 * time.Minute
)

type disk struct{ providerdata.Resource }

var _ providerdata.Managed = &disk{}

// New creates the resource.
func New() resource.Resource {
	return providerdata.WithIdentity(&disk{providerdata.Resource{TypeName: "disk"}}, providerdata.OfVolume()...)
}

// Create creates the volume. After a failure nothing is left; an interrupted creation is continued by the next one.
func (r *disk) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	ctx, cancel, ok := r.BeginCreate(ctx, req, &plan, createTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	plan.planFormat() // of a source that was unknown in the plan
	h := r.host(plan, &resp.Diagnostics)
	plan.checkHosts(&resp.Diagnostics)
	plan.checkMaster(ctx, &resp.Diagnostics)
	plan.checkSize(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	made, below, digest, err := r.make(ctx, h, &plan, plan.withSecrets(ctx, req.Config, &resp.Diagnostics), &resp.Diagnostics)
	if err != nil {
		addError(&resp.Diagnostics, plan, "The disk could not be made", err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	actual := volume.Volume{
		Capacity: &made.Capacity, CopyOnRead: plan.mode() == volume.CopyOnRead,
		Images: append([]volume.Image{plan.top(made.StorageVolume, made.Generation)}, below...),
	}
	plan.ID = types.StringValue(plan.Host.ValueString() + "/" + made.Pool + "/" + made.Name)
	plan.Name, plan.Pool = types.StringValue(made.Name), types.StringValue(made.Pool)
	if plan.Format.IsUnknown() {
		plan.Format = types.StringValue(made.Format)
	}
	if plan.ImageConfiguration.IsUnknown() { // of a source that was unknown in the plan
		plan.ImageConfiguration = types.ObjectNull(tfvalue.ImageConfigurationTypes)
	}
	if plan.Digest.IsUnknown() {
		plan.Digest = tfvalue.OrNull(digest)
	}
	plan.Volume = tfvalue.AsPlanned(ctx, plan.Volume, tfvalue.VolumeObject(actual, tfvalue.Unknowns{}))
	tfvalue.SavePrivate(ctx, resp.Private, ownerKey, r.Provider.Owner, &resp.Diagnostics)
	noteFilesystem(ctx, h, plan, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
}

// make creates the volume in the pool of its usage type, and returns the images below it and the digest of its content.
func (r *disk) make(ctx context.Context, h *host.Host, plan *model, s sourceModel,
	diags *diag.Diagnostics,
) (made content.Created, below []volume.Image, digest string, err error) {
	pool, err := r.Provider.UsageTypes(plan.Host.ValueString()).Pool(ctx, h, plan.UsageType.ValueString())
	if err != nil {
		return made, nil, "", err
	}
	spec := plan.spec(ctx, pool, diags)
	if err := r.share(ctx, *plan, &spec); err != nil {
		return made, nil, "", err
	}
	var on content.Host = h
	if plan.isOver() { // a clone's master is looked at again before it is opened
		on = r.Provider.Files.On(h)
	}
	if plan.kind() == fromVolume {
		err = r.prepareMaster(ctx, h, on, &spec, diags)
	} else {
		digest, err = r.prepareContent(ctx, h, plan, s, &spec, diags)
	}
	if err != nil {
		return made, nil, "", err
	}
	r.Provider.RetryTaken(ctx, func() bool {
		made, err = r.Provider.Content.Make(ctx, plan.Host.ValueString(), on, spec, progress(ctx, *plan))
		return errors.Is(err, content.ErrTaken)
	})
	switch {
	case plan.isOver():
		below = spec.Master.Images
	default:
		below = plan.shared(made.Bases...)
	}
	return made, below, digest, err
}

// Read reads the disk from the host. Only a volume that is missing in its pool is removed from the state; a missing or inactive pool is an
// error.
func (r *disk) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	ctx, cancel, ok := r.BeginRead(ctx, req, &state, readTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok || state.Host.IsNull() && !r.findMoved(ctx, &state, resp.Private, &resp.Diagnostics) {
		return
	}

	state.loadImported(ctx, resp.Private, &resp.Diagnostics)
	if state.isImported() && state.Imported.Found && !state.Volume.IsNull() { // it is in the state by now
		state.Imported.Found = false
		tfvalue.SavePrivate(ctx, resp.Private, importedKey, state.Imported, &resp.Diagnostics)
	}
	before := state
	if r.isMoving(ctx, &state, resp.Private, &resp.Diagnostics) {
		return // the prior state: its content is not here yet
	}
	h := r.host(state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	v, id, err := r.find(ctx, h, state, &resp.Diagnostics)
	var below []volume.Image
	if err == nil && state.Volume.IsNull() {
		v, id, below, err = state.readImported(ctx, h, v, true)
	}
	if errors.Is(err, host.ErrNotFound) {
		if r.isAway(ctx, state, &resp.Diagnostics) {
			return
		}
		if r.warnOfFilesystem(ctx, h, state, req.Private, &resp.Diagnostics) || r.warnOfOverlays(ctx, h, state, err, &resp.Diagnostics) {
			return
		}
		if err = r.gone(ctx, h, state, err, &resp.Diagnostics); err == nil {
			resp.State.RemoveResource(ctx)
			return
		}
	}
	if err != nil {
		addError(&resp.Diagnostics, state, "The disk could not be read", ofMissingPool(err))
		return
	}
	if v.Undescribed {
		return // the prior state
	}
	r.warnOfMasters(ctx, state, &resp.Diagnostics)
	if state.read(ctx, v, id, below, &resp.Diagnostics); before.Volume.IsNull() {
		r.describeImported(ctx, h, &state, v, below, &resp.Diagnostics)
		noteMasters(ctx, h, state, state, &resp.Diagnostics) // there may be no update
	}
	noteFilesystem(ctx, h, state, resp.Private, &resp.Diagnostics)
	if reflect.DeepEqual(before, state) {
		return // the response has it already
	}
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, state)...)
}

// Update grows the disk. All other changes in place concern its chain, and take effect in the machines.
func (r *disk) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state model
	ctx, cancel, ok := r.BeginUpdate(ctx, req, &plan, &state, updateTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	state.loadImported(ctx, req.Private, &resp.Diagnostics)
	h := r.host(plan, &resp.Diagnostics)
	plan.checkMaster(ctx, &resp.Diagnostics)
	r.settleDigest(ctx, &plan, state, &resp.Diagnostics)
	r.adoptFormat(ctx, plan.Format, &state, &resp.Diagnostics)
	addChanged(&resp.Diagnostics, state, r.replacedBy(ctx, plan, state, &resp.Diagnostics))
	plan.refuseShrinking(ctx, state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	source := plan.withSecrets(ctx, req.Config, &resp.Diagnostics)
	if err := r.relocate(ctx, &plan, state, source, resp.Private, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, state, "The disk could not be moved to host "+plan.Host.ValueString(), err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !plan.Host.Equal(state.Host) && !plan.moves(state) {
		resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
		return
	}
	if err := noteImported(ctx, h, plan, state, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, plan, "The imported disk could not be recorded on its host", err)
		return
	}
	if err := r.updateHosts(ctx, &plan, state, &resp.Diagnostics); err != nil {
		addHostsError(&resp.Diagnostics, plan, err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.grow(ctx, h, plan, state, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, plan, "The disk could not be grown", err)
		return
	}
	r.adoptConfiguration(ctx, h, &plan, source, &resp.Diagnostics)
	endImport(ctx, state, resp.Private, &resp.Diagnostics)
	own, _ := state.made(ctx, &resp.Diagnostics)
	if size := plan.grownSize(state); size != 0 {
		own.Capacity = &size
	}
	plan.Volume = tfvalue.AsPlanned(ctx, plan.Volume, plan.over(plan.asConfigured(own), tfvalue.Unknowns{}))
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
}

// host is the disk's host.
func (r *disk) host(m model, diags *diag.Diagnostics) *host.Host {
	return r.Provider.RecordedHost(m.Host.ValueString(), "disk "+cmp.Or(m.ID.ValueString(), m.label()), diags)
}

func addError(diags *diag.Diagnostics, m model, summary string, err error) {
	diags.AddError(summary, host.Describe("Disk "+m.label(), m.Host.ValueString(), err))
}

// label is the name, or the beginning of one that is not known.
func (m model) label() string {
	if name := m.Name.ValueString(); name != "" {
		return name
	}
	return m.NamePrefix.ValueString() + "*"
}
