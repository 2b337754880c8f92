// Package volumebinding is the resource virtclaim_volume_binding: where a volume is, under which access mode, and for
// which hosts.
package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/backend"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The timeouts when the user sets none. A claim may have to be provisioned during create and update.
const (
	createTimeout = 10 * time.Minute
	readTimeout   = 2 * time.Minute
	updateTimeout = 10 * time.Minute
	deleteTimeout = 5 * time.Minute
)

type binding struct{ backend *backend.Backend }

var (
	_ resource.ResourceWithConfigure      = &binding{}
	_ resource.ResourceWithModifyPlan     = &binding{}
	_ resource.ResourceWithValidateConfig = &binding{}
	_ resource.ResourceWithImportState    = &binding{}
)

// New makes the resource.
func New() resource.Resource { return &binding{} }

func (r *binding) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_volume_binding"
}

func (r *binding) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.backend = backend.From(req.ProviderData, &resp.Diagnostics)
}

// Create resolves the source, puts the credentials on the hosts, and measures what no claim tells the size of. Until
// all of that is done nothing stays: what was put on a host is taken back.
func (r *binding) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.backend.Apply()
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Create(ctx, createTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if plan.ID.IsUnknown() {
		plan.ID = types.StringValue(uuid.NewString())
	}
	if !r.backend.Take("binding " + plan.ID.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Two bindings of one name",
			fmt.Sprintf("Another resource of this configuration makes the binding %s, too: they would have each other's credentials. "+
				"Give each its own name.", plan.Name.ValueString()))
		return
	}
	own := holding{Nonce: uuid.NewString(), Owner: r.backend.Owner, Reserved: plan.Reserved.ValueBool()}
	found, ok := r.await(ctx, plan, secretOf(ctx, req.Config, &resp.Diagnostics), &own, &resp.Diagnostics)
	if !ok {
		return
	}
	own.Version = found.Version()
	actual := plan.held(found.Volume, plan.hostKeys(ctx, &resp.Diagnostics))
	if !checkIdentity(ctx, plan.Volume, actual, &resp.Diagnostics) {
		return
	}
	put, err := r.take(ctx, plan, own, found, &actual, &resp.Diagnostics)
	if err != nil {
		undo := r.giveBack(ctx, plan, own, put, actual.Images[0].Hosts, &resp.Diagnostics)
		resp.Diagnostics.AddError("The volume could not be bound", fmt.Sprintf("%s: %s%s", plan.Name.ValueString(), err, leftBehind(undo)))
		if undo == nil {
			return
		}
		// What is left is in state, so that the next apply removes it.
	}
	plan.finish(ctx, actual, put, &resp.Diagnostics)
	resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// take reserves the claim, gives the hosts the credentials, and measures what no claim tells the size of.
func (r *binding) take(ctx context.Context, m model, own holding, found source.Resolved, v *volume.Volume, diags *diag.Diagnostics) (put map[string]string, err error) {
	if err := r.reserve(ctx, m, own, *v, diags); err != nil {
		return nil, err
	}
	if err := r.checkPods(ctx, m, diags); err != nil {
		return nil, err
	}
	hosts := v.Images[0].Hosts
	put, err = r.putCredentials(ctx, m.record(own.Owner, own, found.Credentials), found.Credentials, hosts)
	if err == nil {
		err = r.prepare(ctx, m, v, found.Volume.Capacity, hosts, diags)
	}
	return put, err
}

// giveBack undoes take, also when the operation's time is over. Hosts that are not known to have got the credentials may
// have got them all the same, when their answer was lost; one that can't be asked has most likely not.
func (r *binding) giveBack(ctx context.Context, m model, own holding, put map[string]string, hosts []string, diags *diag.Diagnostics) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	has := slices.Sorted(maps.Keys(put))
	err := r.removeCredentials(ctx, m.ID.ValueString(), own.Nonce, has)
	_ = r.removeCredentials(ctx, m.ID.ValueString(), own.Nonce, leftHosts(hosts, has))
	return errors.Join(err, r.release(ctx, m, own, diags))
}

func leftBehind(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("\n\nLeft behind, because it could not be removed; the next apply does: %s", err)
}

// Read refreshes the volume and what the hosts have of the credentials. It never takes the binding out of state: its
// secrets are still on the hosts, and only destroying it or another source ends it.
func (r *binding) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	if !r.backend.Ready() {
		return
	}
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	own, diags := loadHolding(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	timeout, diags := state.Timeouts.Read(ctx, readTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if !state.isAdopted() {
		r.fillVolume(ctx, &state, &own, &resp.Diagnostics)
	} else if !r.refreshVolume(ctx, &state, &own, &resp.Diagnostics) {
		return
	}
	r.refreshReservation(ctx, &state, own, &resp.Diagnostics)
	r.refreshPods(ctx, state, &resp.Diagnostics)
	r.refreshCredentials(ctx, &state, own, &resp.Diagnostics)
	resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

// Update puts the new before it takes away the old: the volume as it is to be, credentials where they are missing or
// out of date, then none on hosts that the binding has left.
func (r *binding) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.backend.Apply()
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	own, diags := loadHolding(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	timeout, diags := plan.Timeouts.Update(ctx, updateTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if !plan.needsResolving(state) {
		// Only the timeouts differ.
		resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
		return
	}
	found, ok := r.await(ctx, plan, secretOf(ctx, req.Config, &resp.Diagnostics), &own, &resp.Diagnostics)
	if !ok {
		return
	}
	hosts := plan.hostKeys(ctx, &resp.Diagnostics)
	actual := plan.held(found.Volume, hosts)
	// What an import has found is where the volume would be without the options that the configuration adds.
	if !checkIdentity(ctx, plan.Volume, actual, &resp.Diagnostics) ||
		state.isAdopted() && !checkIdentity(ctx, state.Volume, actual, &resp.Diagnostics) {
		return
	}
	before := r.present(state, r.hostsBefore(ctx, state, own, &resp.Diagnostics), &resp.Diagnostics)
	record := plan.record(own.Owner, own, found.Credentials)
	stale := r.stale(ctx, state, hosts, record, &resp.Diagnostics)
	var put map[string]string
	undo := func() error { return nil }
	err := r.checkMode(ctx, plan, state, actual)
	if err == nil {
		own.Reserved = own.Reserved || plan.Reserved.ValueBool()
		resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
		if err = r.reserve(ctx, plan, own, actual, &resp.Diagnostics); err == nil {
			undo = func() error { return r.restore(ctx, plan, state, own, actual, &resp.Diagnostics) }
		}
	}
	if err == nil && !plan.sameBinding(state) {
		err = r.checkPods(ctx, plan, &resp.Diagnostics)
	}
	if err == nil {
		put, err = r.putCredentials(ctx, record, found.Credentials, stale)
	}
	if err == nil && actual.Capacity == nil {
		actual.Capacity = state.capacityOf(ctx, actual, &resp.Diagnostics)
	}
	if err == nil {
		err = r.prepare(ctx, plan, &actual, newImage(ctx, plan, state, found, &resp.Diagnostics), stale, &resp.Diagnostics)
	}
	if err == nil {
		keep := hosts
		if found.Credentials == nil {
			keep = nil // the storage no longer asks for any
		}
		if err = r.letGo(ctx, state, own, leftHosts(before, hosts), &resp.Diagnostics); err == nil {
			err = r.removeCredentials(ctx, plan.ID.ValueString(), own.Nonce, leftHosts(before, keep))
		}
	}
	if err == nil && !plan.Reserved.ValueBool() {
		err = r.release(ctx, state, own, &resp.Diagnostics)
		own.Reserved = err != nil
	}
	if err != nil {
		added := leftHosts(slices.Collect(maps.Keys(put)), before)
		err = errors.Join(err, r.takeBack(ctx, plan.ID.ValueString(), own.Nonce, added), undo())
		resp.Diagnostics.AddError("The binding could not be updated",
			fmt.Sprintf("%s: %s\n\nApply again when this is mended.", plan.Name.ValueString(), err))
		return
	}
	own.Version = found.Version()
	plan.finish(ctx, actual, merge(state.credentialVersions(ctx, &resp.Diagnostics), put, hosts), &resp.Diagnostics)
	resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
}

// Delete needs only what is in state: a claim that is gone or being deleted must not hold it up.
func (r *binding) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	own, diags := loadHolding(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	timeout, diags := state.Timeouts.Delete(ctx, deleteTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	hosts := r.present(state, r.hostsOf(ctx, state, &resp.Diagnostics), &resp.Diagnostics)
	if err := r.letGo(ctx, state, own, hosts, &resp.Diagnostics); err != nil {
		resp.Diagnostics.AddError("The binding could not be removed", fmt.Sprintf("%s: %s", state.Name.ValueString(), err))
		return
	}
	if state.hasCredentials(ctx, &resp.Diagnostics) || !state.isAdopted() {
		if err := r.removeCredentials(ctx, state.ID.ValueString(), own.Nonce, hosts); err != nil {
			resp.Diagnostics.AddError("The binding could not be removed",
				fmt.Sprintf("%s: its credentials could not be removed from every host: %s\n\nApply again when this is mended.",
					state.Name.ValueString(), err))
			return
		}
	}
	if err := r.release(ctx, state, own, &resp.Diagnostics); err != nil {
		resp.Diagnostics.AddError("The binding could not be removed",
			fmt.Sprintf("%s: its claim could not be released: %s\n\nApply again when this is mended.", state.Name.ValueString(), err))
	}
}

// letGo has machines on hosts let go of the storage that is about to be released there. Where another binding of the same
// owner and name has come after this one, the machines are that one's by now.
func (r *binding) letGo(ctx context.Context, state model, own holding, keys []string, diags *diag.Diagnostics) error {
	v, known, d := tfvalue.VolumeFrom(ctx, state.Volume)
	diags.Append(d...)
	if !known && !state.isAdopted() {
		diags.AddWarning("Nobody has looked who uses the storage", fmt.Sprintf("The binding %s was imported, and where its volume is was "+
			"never found out. See to it yourself that no machine uses it.", state.Name.ValueString()))
	}
	if !known || len(v.Images) == 0 || len(keys) == 0 {
		return nil
	}
	hosts := map[string]guard.Host{}
	for _, key := range keys {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return err
		}
		hosts[key] = h
	}
	others, err := r.others(ctx, state, own)
	if err != nil || others.isReplaced {
		return err
	}
	return guard.LetGo(ctx, hosts, v.Images[0], own.Owner, func(u guard.Use) bool {
		return own.spares(u, state.ID.ValueString(), others)
	})
}

// checkIdentity refuses to bind other storage than the plan showed.
func checkIdentity(ctx context.Context, expected types.Object, actual volume.Volume, diags *diag.Diagnostics) bool {
	before, known, d := tfvalue.VolumeFrom(ctx, expected)
	if diags.Append(d...); diags.HasError() {
		return false
	}
	if known && !sameUnit(before.Images[0], actual.Images[0]) {
		diags.AddAttributeError(path.Root("volume"), "The storage changed during the apply",
			fmt.Sprintf("It was %s in the plan, but the source now leads to %s. Nothing was changed. "+
				"Plan and apply again if that is what you want.", before.Images[0].Name, actual.Images[0].Name))
		return false
	}
	return true
}

// sameUnit tells whether two images are known to be the same storage, from wherever it is opened: that its hosts or its
// monitors are all others makes it no other storage.
func sameUnit(a, b volume.Image) bool {
	a.Hosts, b.Hosts = nil, nil
	same, known := volume.SameMaster(a, b)
	return same && known
}

// finish fills in what was computed.
func (m *model) finish(ctx context.Context, actual volume.Volume, versions map[string]string, diags *diag.Diagnostics) {
	m.Volume = tfvalue.AsPlanned(ctx, m.Volume, tfvalue.VolumeObject(actual, tfvalue.Unknowns{}))
	m.Credentials = types.MapNull(types.StringType)
	if actual.Images[0].Auth != nil {
		var d diag.Diagnostics
		m.Credentials, d = types.MapValueFrom(ctx, types.StringType, versions)
		diags.Append(d...)
	}
}
