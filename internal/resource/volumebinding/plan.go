package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var sourcePath = path.Root("source")

// ValidateConfig checks what requires neither hosts nor cluster.
func (r *binding) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...); resp.Diagnostics.HasError() {
		return
	}
	if config.isKnown(ctx, dynamicSource) {
		err := config.dynamic(ctx, &resp.Diagnostics).validate(ctx, &resp.Diagnostics)
		addSourceError(&resp.Diagnostics, "Invalid source", sourcePath.AtName(dynamicSource), err)
		return
	}
	name, d := config.direct(ctx, &resp.Diagnostics)
	if d == nil || !config.isKnown(ctx, name) {
		return
	}
	_, secret := d.login()
	err := d.source(ctx, given{secret: secret}, &resp.Diagnostics).Validate()
	addSourceError(&resp.Diagnostics, "Invalid source", sourcePath.AtName(name), err)
}

// ModifyPlan plans the attributes of the volume by reading the source, without waiting for it. A source that does not exist yet leaves the
// volume unknown with a warning; a permanent failure is an error.
func (r *binding) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan model
	var state *model
	if !req.State.Raw.IsNull() {
		state = &model{}
		resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, state)...)
	}
	if req.Plan.Raw.IsNull() && state != nil {
		state.warnOfLoss(ctx, "Destroying", &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() || !r.Provider.Ready() {
		return
	}
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, &plan)...)
	r.checkHosts(plan, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.Provider.Owner == "" && plan.dynamic(ctx, &resp.Diagnostics) != nil {
		resp.Diagnostics.AddAttributeError(sourcePath.AtName(dynamicSource), "The provider has no owner", "source.dynamic: an apply that "+
			"is interrupted could not find the volume again that it had made: set owner in the provider's configuration.")
	}
	plan.Reserved, plan.Attached = r.planReserved(plan), r.planAttached(ctx, plan, state, &resp.Diagnostics)
	own := loadPrivateState(ctx, req.Private, &resp.Diagnostics)
	if state == nil {
		if !plan.Name.IsUnknown() {
			plan.ID = id(r.Provider.Owner, plan.Name.ValueString())
		}
		if own.ClaimUID != "" || own.Answer != nil { // those of an instance which is replaced, also because of -replace
			r.checkReplacement(ctx, plan, own, &resp.Diagnostics)
			plan.warnOfLoss(ctx, "Replacing", &resp.Diagnostics)
		}
		plan.Volume, plan.Credentials = r.planVolume(ctx, plan, nil, privateState{}, &resp.Diagnostics)
	} else {
		r.planChange(ctx, &plan, *state, own, resp)
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(tfvalue.Set(ctx, resp.Plan.Schema, &resp.Plan.Raw, plan)...)
	}
}

func (r *binding) planChange(ctx context.Context, plan *model, state model, own privateState, resp *resource.ModifyPlanResponse) {
	diags := &resp.Diagnostics
	r.present(state, state.hostKeys(ctx, diags), diags)
	if plan.otherStorage(ctx, state, own, diags) {
		resp.RequiresReplace = append(resp.RequiresReplace, sourcePath)
	}
	if len(resp.RequiresReplace) > 0 {
		state.warnOfLoss(ctx, "Replacing", diags)
		if r.checkReplacement(ctx, *plan, own, diags); diags.HasError() {
			return
		}
	}
	source := plan.Source
	made := plan.dynamic(ctx, diags)
	if made != nil && len(resp.RequiresReplace) == 0 {
		restarts := made.restarts(ctx, state, own, diags)
		if was := state.dynamic(ctx, diags); was != nil && plan.Name.Equal(state.Name) {
			made.checkShrinking(*was, diags.AddAttributeWarning)
		}
		defer func() {
			plan.Source = source
			if restarts { // its address may be another one then
				plan.Volume, plan.Credentials = tfvalue.UnknownVolume(), types.MapUnknown(types.StringType)
			}
		}()
		*plan, state = plan.answered(ctx, own.moved(), diags), state.answered(ctx, own, diags)
		plan.Reserved = r.planReserved(*plan)
	}
	r.planUpdate(ctx, plan, state, own, diags)
	r.planRemade(ctx, plan, state, own, resp)
}

// checkHosts refuses hosts that the provider is not configured with.
func (r *binding) checkHosts(plan model, diags *diag.Diagnostics) {
	for _, e := range plan.Hosts.Elements() {
		key, ok := e.(types.String)
		if !ok || key.IsUnknown() {
			continue
		}
		if _, err := r.Provider.Hosts.Host(key.ValueString()); err != nil {
			diags.AddAttributeError(path.Root("hosts").AtSetValue(key), "Unknown host", err.Error())
		}
	}
}

// planUpdate keeps the volume of the state unless the configuration or the version of the credentials has changed: new credentials may be
// of another user.
func (r *binding) planUpdate(ctx context.Context, plan *model, state model, own privateState, diags *diag.Diagnostics) {
	rotated, missing := state.outdated(ctx, own, diags)
	if !plan.sameBinding(state) || rotated || own.Imported && state.Volume.IsNull() {
		plan.Volume, plan.Credentials = r.planVolume(ctx, *plan, &state, own, diags)
		return
	}
	plan.Volume, plan.Credentials = state.Volume, state.Credentials
	if missing {
		plan.Credentials = types.MapUnknown(types.StringType)
	}
}

// outdated reports whether a host has credentials of another version than the last refresh saw (rotated), and whether a host lacks them or
// one has them that should not (missing).
func (m model) outdated(ctx context.Context, own privateState, diags *diag.Diagnostics) (rotated, missing bool) {
	if m.Credentials.IsNull() {
		return false, false
	}
	have, hosts := m.credentialVersions(ctx, diags), m.hostKeys(ctx, diags)
	missing = len(have) > len(hosts)
	for _, key := range hosts {
		version, ok := have[key]
		rotated, missing = rotated || ok && version != own.Version, missing || !ok
	}
	return rotated, missing
}

// planVolume is the volume and the credentials as far as they are known before an apply. The instance of a new binding is unknown, so that
// machines and disks with the volume of a replaced binding are planned as updates.
func (r *binding) planVolume(ctx context.Context, plan model, state *model, own privateState,
	diags *diag.Diagnostics,
) (types.Object, types.Map) {
	unknown, unknownCredentials := tfvalue.UnknownVolume(), types.MapUnknown(types.StringType)
	if plan.Hosts.IsUnknown() || slices.ContainsFunc(plan.Hosts.Elements(), isUnknown) || plan.AccessMode.IsUnknown() {
		return unknown, unknownCredentials
	}
	found, known := r.resolveForPlan(ctx, plan, diags)
	if !known || diags.HasError() {
		return unknown, unknownCredentials
	}
	v := plan.held(found.Volume, plan.hostKeys(ctx, diags), plan.instance(ctx, state, own, diags))
	if v.Capacity == nil {
		v.Capacity = state.capacityOf(v, diags)
	}
	o := tfvalue.VolumeObject(v, tfvalue.Unknowns{
		Capacity: v.Capacity == nil, Binding: state == nil, Secret: plan.ID.IsUnknown(),
		Instance: plan.Content.IsUnknown(),
	})
	if v.Images[0].Auth == nil {
		return o, types.MapNull(types.StringType)
	}
	return o, unknownCredentials
}

func isUnknown(v attr.Value) bool { return v.IsUnknown() }

// capacityOf is the measured capacity of the same storage in state, or nil.
func (m *model) capacityOf(v volume.Volume, diags *diag.Diagnostics) *int64 {
	if m == nil {
		return nil
	}
	before, known, d := tfvalue.VolumeFrom(m.Volume)
	if diags.Append(d...); !known {
		return nil
	}
	is := v.Images[0]
	is.Generation = before.Images[0].Generation // other content has the same size
	if !volume.SameStorage(before.Images[0], is) {
		return nil
	}
	return before.Capacity
}

// sameBinding reports whether source, hosts, mode and content equal those in state.
func (m model) sameBinding(state model) bool {
	return m.Source.Equal(state.Source) && m.Hosts.Equal(state.Hosts) && m.AccessMode.Equal(state.AccessMode) &&
		m.Content.Equal(state.Content)
}

// needsResolving reports whether an update changes more than the timeouts.
func (m model) needsResolving(state model) bool {
	return !m.sameBinding(state) || !m.Credentials.Equal(state.Credentials) || !m.Volume.Equal(state.Volume) ||
		!m.Reserved.Equal(state.Reserved) || !m.Attached.Equal(state.Attached)
}

// otherStorage reports whether the source is known to name other storage than the state's. Unknown values never force a replacement.
func (m model) otherStorage(ctx context.Context, state model, own privateState, diags *diag.Diagnostics) bool {
	if m.Source.IsUnknown() {
		return false
	}
	was, is := state.claim(ctx, diags), m.claim(ctx, diags)
	if was != nil && is != nil {
		// After an import the configuration's paths and force_block are adopted.
		another := state.isAdopted(own) && (differs(was.MountPath, is.MountPath) || differs(was.DevicePath, is.DevicePath) ||
			differs(was.ForceBlock, is.ForceBlock) || isSwitched(was.SharedFolder, is.SharedFolder) ||
			isSwitched(was.Attach, is.Attach))
		return another || differs(was.Namespace, is.Namespace) || differs(was.ClaimName, is.ClaimName)
	}
	madeBefore, made := state.dynamic(ctx, diags), m.dynamic(ctx, diags)
	if madeBefore != nil && made != nil {
		return made.isOther(ctx, *madeBefore)
	}
	before, _ := state.direct(ctx, diags)
	after, _ := m.direct(ctx, diags)
	if before != "" && before == after {
		return m.isKnown(ctx, after, writeOnly...) && m.otherUnit(ctx, state, diags)
	}
	// The source changed between claim and direct storage or between two kinds of it, unless the new one is wholly unknown.
	return is != nil || after != "" || made != nil
}

// otherUnit reports whether a direct source names another unit of storage. Where only the servers identify it and none is left, that can't
// be decided, and is an error.
func (m model) otherUnit(ctx context.Context, state model, diags *diag.Diagnostics) bool {
	name, after := m.direct(ctx, diags)
	_, before := state.direct(ctx, diags)
	is, err := after.source(ctx, given{later: true}, diags).Storage()
	was, wrong := before.source(ctx, given{later: true}, diags).Storage()
	if err != nil || wrong != nil {
		return false // already reported by validation
	}
	if was.Images[0].Format != is.Images[0].Format {
		return true // another format requires a replacement, which checks the header that a guest may have written
	}
	same, certain := volume.SameMaster(was.Images[0], is.Images[0])
	if !certain {
		diags.AddAttributeError(sourcePath.AtName(name), "The identity of the storage is not known",
			fmt.Sprintf("All servers of %s are others now, so virtclaim can't tell whether it moved or is something else of the same "+
				"name. If it moved, keep one of the old servers for one apply where the protocol takes several. If it is other storage: "+
				"terraform apply -replace=<address of this resource>.", is.Images[0].Name))
	}
	return certain && !same
}

func differs(was, is attr.Value) bool { return !is.IsUnknown() && !is.Equal(was) }

// isSwitched is differs for what is off if absent.
func isSwitched(was, is types.Bool) bool { return !is.IsUnknown() && is.ValueBool() != was.ValueBool() }

// addSourceError attaches err to the attributes below at that it names. The text names them, too, because Terraform can't show the line of
// a nested attribute.
func addSourceError(diags *diag.Diagnostics, summary string, at path.Path, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			addSourceError(diags, summary, at, e)
		}
		return
	}
	if err == nil {
		return
	}
	var blamed *source.Error
	if errors.As(err, &blamed) && blamed.Attribute != "" {
		at = at.AtName(blamed.Attribute)
	}
	diags.AddAttributeError(at, summary, fmt.Sprintf("%s: %s.", at, err))
}
