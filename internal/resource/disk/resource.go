// Package disk implements the resource virtclaim_disk: local content on one host, created from any volume or blank.
package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/backend"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The default timeouts. A clone may be large.
const (
	createTimeout = 60 * time.Minute
	readTimeout   = 2 * time.Minute
	updateTimeout = 10 * time.Minute
	deleteTimeout = 10 * time.Minute
)

// cleanUpTime bounds the revert of a failed operation, whose own timeout may be over.
const cleanUpTime = 30 * time.Second

type disk struct{ backend *backend.Backend }

var (
	_ resource.ResourceWithConfigure      = &disk{}
	_ resource.ResourceWithModifyPlan     = &disk{}
	_ resource.ResourceWithValidateConfig = &disk{}
	_ resource.ResourceWithImportState    = &disk{}
)

// New creates the resource.
func New() resource.Resource { return &disk{} }

func (r *disk) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_disk"
}

func (r *disk) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.backend = backend.From(req.ProviderData, &resp.Diagnostics)
}

// Create creates the volume. After a failure nothing is left; an interrupted creation is continued by the next one.
func (r *disk) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.backend.Apply()
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Create(ctx, createTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	plan.planFormat() // of a source that was unknown in the plan
	h := r.host(plan, &resp.Diagnostics)
	plan.checkMaster(ctx, &resp.Diagnostics)
	plan.checkSize(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	made, below, digest, err := r.make(ctx, h, plan, plan.withSecrets(ctx, req.Config, &resp.Diagnostics), &resp.Diagnostics)
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
	if plan.Digest.IsUnknown() {
		plan.Digest = tfvalue.OrNull(digest)
	}
	plan.Volume = tfvalue.AsPlanned(ctx, plan.Volume, tfvalue.VolumeObject(actual, tfvalue.Unknowns{}))
	resp.Diagnostics.Append(saveOwner(ctx, r.backend.Owner, resp.Private)...)
	resp.Diagnostics.Append(noteFilesystem(ctx, h, plan, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// make creates the volume in the pool of its usage type, and returns the images below it and the digest of its content.
func (r *disk) make(ctx context.Context, h *host.Host, plan model, s sourceModel, diags *diag.Diagnostics) (made content.Created, below []volume.Image, digest string, err error) {
	pool, err := r.backend.UsageTypes(plan.Host.ValueString()).Pool(ctx, h, plan.UsageType.ValueString())
	if err != nil {
		return made, nil, "", err
	}
	spec := plan.spec(ctx, pool, diags)
	if plan.kind() == fromVolume {
		err = r.prepareMaster(ctx, h, &spec, diags)
	} else {
		digest, err = r.prepareContent(ctx, h, plan, s, &spec)
	}
	if err != nil {
		return made, nil, "", err
	}
	made, err = r.backend.Content.Make(ctx, plan.Host.ValueString(), h, spec, progress(ctx, plan))
	switch {
	case plan.isOver():
		below = spec.Master.Images
	case spec.Base != nil:
		below = []volume.Image{plan.shared(made.Base)}
	}
	return made, below, digest, err
}

// Read reads the disk from the host. Only a volume that is missing in its pool is removed from the state; a missing or inactive pool is an
// error.
func (r *disk) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	if !r.backend.Ready() {
		return
	}
	r.backend.Refreshes()
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := state.Timeouts.Read(ctx, readTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	h := r.host(state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	v, id, err := r.find(ctx, h, state, &resp.Diagnostics)
	var below []volume.Image
	if err == nil && state.Volume.IsNull() {
		v, id, below, err = state.readImported(ctx, h, v)
	}
	if errors.Is(err, host.ErrNotFound) {
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
	state.read(ctx, v, id, below, &resp.Diagnostics)
	resp.Diagnostics.Append(noteFilesystem(ctx, h, state, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update grows the disk. All other changes in place concern its chain, and take effect in the machines.
func (r *disk) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.backend.Apply()
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := plan.Timeouts.Update(ctx, updateTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	h := r.host(plan, &resp.Diagnostics)
	plan.checkMaster(ctx, &resp.Diagnostics)
	r.settleDigest(ctx, &plan, state, &resp.Diagnostics)
	r.adoptFormat(ctx, plan.Format, &state, &resp.Diagnostics)
	addChanged(&resp.Diagnostics, state, plan.otherDisk(ctx, state, &resp.Diagnostics))
	plan.refuseShrinking(ctx, state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := noteImported(ctx, h, plan, state, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, plan, "The imported disk could not be recorded on its host", err)
		return
	}
	if err := r.grow(ctx, h, plan, state, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, plan, "The disk could not be grown", err)
		return
	}
	own, _ := state.made(ctx, &resp.Diagnostics)
	if size := plan.size(); size != 0 {
		own.Capacity = &size
	}
	plan.Volume = tfvalue.AsPlanned(ctx, plan.Volume, plan.over(plan.asConfigured(own), tfvalue.Unknowns{}))
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete detaches the disk from machines, and deletes the volume.
func (r *disk) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := state.Timeouts.Delete(ctx, deleteTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	h := r.host(state, &resp.Diagnostics)
	own, known := state.made(ctx, &resp.Diagnostics)
	former, diags := loadOwner(ctx, r.backend.Owner, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !known {
		return
	}
	key, top := state.Host.ValueString(), own.Images[0]
	pool, name := state.Pool.ValueString(), state.Name.ValueString()
	err := content.Removable(ctx, h, pool, name, top.Format, top.Generation)
	if errors.Is(err, content.ErrBacking) {
		// If a machine of another owner writes to the disk, that is the better error than the advice to remove the overlay.
		err = cmp.Or(guard.External(ctx, key, h, top), err)
	}
	if errors.Is(err, host.ErrNotFound) && !errors.Is(err, content.ErrReplaced) {
		err = cmp.Or(refuseMissing(ctx, h, state, top, req.Private, &resp.Diagnostics), err)
	}
	pinned := ""
	if err == nil {
		pinned, err = pinnedBase(ctx, h, state, top)
	}
	if err == nil || errors.Is(err, host.ErrNotFound) && !errors.Is(err, content.ErrReplaced) { // the name of a missing volume may still be in use
		err = r.detach(ctx, h, top, []string{r.backend.Owner, former})
	}
	if base := sharedBase(own); base != "" && (err == nil || errors.Is(err, content.ErrReplaced)) {
		err = cmp.Or(content.NoteDeletion(ctx, h, pool, name, top.Generation), err)
	}
	if err == nil || errors.Is(err, content.ErrReplaced) {
		err = r.remove(ctx, h, pool, name, top)
	}
	if err == nil {
		err = r.collect(ctx, h, state, &resp.Diagnostics)
	}
	if err == nil {
		err = content.ForgetMasterRecord(ctx, h, own.Images)
	}
	if err == nil && pinned != "" {
		err = r.backend.Content.CollectGarbage(ctx, key, h, state.Pool.ValueString(), pinned)
	}
	if err != nil {
		addError(&resp.Diagnostics, state, "The disk could not be removed", ofMissingPool(err))
	}
}

// remove deletes the volume. If that fails, and the volume still exists, the record of the deletion is dropped.
func (r *disk) remove(ctx context.Context, h *host.Host, pool, name string, top volume.Image) error {
	err := r.backend.Content.Remove(ctx, h.Key, h, pool, name, top.Format, top.Generation)
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	if v, lookup := h.Volume(ctx, pool, name); lookup == nil && content.Recognize(ctx, h, v, top.Format, top.Generation) == nil {
		return errors.Join(err, content.ForgetDeletion(ctx, h, pool, top.Generation))
	}
	return err
}

// detach unplugs a disk from its machines. It is an error if one of them was migrated to another host outside of Terraform.
func (r *disk) detach(ctx context.Context, h *host.Host, top volume.Image, owners []string) error {
	users, err := guard.Users(ctx, h.Key, h, top)
	if err == nil {
		err = guard.HostsOf(r.backend.Hosts).CheckElsewhere(ctx, []string{h.Key}, top, users, nil)
	}
	if err != nil {
		return err
	}
	defer tfvalue.Progress(ctx, "Waiting for guests to acknowledge the unplug", map[string]any{"host": h.Key, "disk": top.Name})()
	return guard.Detach(ctx, map[string]guard.Host{h.Key: h}, top, owners, func(u guard.Use) (independent bool, err error) {
		if u.Live {
			err = content.CheckOpenMasters(ctx, h, u.Device.Volume.Images)
		}
		if errors.Is(err, content.ErrMasterChanged) {
			err = guard.ExplainMaster(u.Domain, u.Device, err)
		}
		return false, err
	})
}

// collect deletes the shared image of a deleted disk if no other disk needs it. An error keeps the disk in the state, so that the next
// destroy tries again.
func (r *disk) collect(ctx context.Context, h *host.Host, state model, diags *diag.Diagnostics) error {
	own, known := state.made(ctx, diags)
	base := sharedBase(own)
	if !known || base == "" {
		return nil
	}
	pool := state.Pool.ValueString()
	if err := r.backend.Content.CollectGarbage(ctx, state.Host.ValueString(), h, pool, base); err != nil {
		return err
	}
	return content.ForgetDeletion(ctx, h, pool, own.Images[0].Generation)
}

// sharedBase is the name of the disk's shared image; empty if it has none.
func sharedBase(own volume.Volume) string {
	if len(own.Images) < 2 || !content.IsBase(own.Images[1].Name) {
		return ""
	}
	return filepath.Base(own.Images[1].Name)
}

// pinnedBase is the shared image that the header of a raw disk names: a guest wrote that header, but while no machine had the disk that
// could not be known, and the image was kept.
func pinnedBase(ctx context.Context, h *host.Host, state model, top volume.Image) (string, error) {
	if top.Format != "raw" {
		return "", nil
	}
	v, err := h.Volume(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if errors.Is(err, host.ErrNotFound) {
		return "", nil
	}
	if err = content.Described(err, top.Format); err == nil && v.Undescribed {
		v.Backing, err = content.Named(ctx, h, v)
	}
	if err != nil || !content.IsBase(v.Backing) {
		return "", err
	}
	return filepath.Base(v.Backing), nil
}

// ImportState takes <host>/<pool>/<volume>.
func (r *disk) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	parts, err := tfvalue.ImportID(req.ID, "<host>/<pool>/<volume>")
	if err != nil {
		resp.Diagnostics.AddError("Invalid import id", err.Error())
		return
	}
	if !r.backend.Ready() {
		resp.Diagnostics.AddError("The disk could not be imported", "The provider's configuration is not known yet.")
		return
	}
	h, err := r.backend.Hosts.Host(parts[0])
	if err != nil {
		resp.Diagnostics.AddError("Unknown host", err.Error())
		return
	}
	if _, err = h.Volume(ctx, parts[1], parts[2]); err == nil {
		err = content.Import(ctx, h, parts[1], parts[2])
	}
	if err != nil {
		resp.Diagnostics.AddError("The disk could not be imported", err.Error())
		return
	}
	for name, value := range map[string]string{"id": req.ID, "host": parts[0], "pool": parts[1], "name": parts[2]} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// host is the disk's host.
func (r *disk) host(m model, diags *diag.Diagnostics) *host.Host {
	h, err := r.backend.Hosts.Host(m.Host.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("host"), "Unknown host", err.Error())
	}
	return h
}

func addError(diags *diag.Diagnostics, m model, summary string, err error) {
	name := m.Name.ValueString()
	if name == "" {
		name = m.NamePrefix.ValueString() + "*"
	}
	diags.AddError(summary, fmt.Sprintf("Disk %s on host %s: %s", name, m.Host.ValueString(), err))
}
