package virtualmachine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// ValidateConfig checks what requires no host.
func (r *virtualMachine) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &config)...); resp.Diagnostics.HasError() {
		return
	}
	config.Memory.CheckUnit(path.Root("memory"), "Mi", &resp.Diagnostics)
	config.MaxMemory.CheckUnit(path.Root("max_memory"), "Mi", &resp.Diagnostics)
	config.checkBootOrder(&resp.Diagnostics)
	checkInterfaces(ctx, config, &resp.Diagnostics)
	checkWaitFor(ctx, config, &resp.Diagnostics)
}

// checkBootOrder refuses a boot order of two devices. The error is at the later one, so that it is always the same.
func (m model) checkBootOrder(diags *diag.Diagnostics) {
	first := map[int64]string{}
	check := func(order types.Int64, name string, at path.Path) {
		if order.IsNull() || order.IsUnknown() {
			return
		}
		if other, taken := first[order.ValueInt64()]; taken {
			diags.AddAttributeError(at.AtName("boot_order"), "Duplicate boot order",
				fmt.Sprintf("The %s and the %s both have boot order %d. Give each its own.", other, name, order.ValueInt64()))
			return
		}
		first[order.ValueInt64()] = name
	}
	disks, interfaces := m.disks(), m.interfaces()
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		check(disks[key].BootOrder, "disk "+key, diskPath(key))
	}
	for _, key := range slices.Sorted(maps.Keys(interfaces)) {
		check(interfaces[key].BootOrder, "interface "+key, interfacePath(key))
	}
}

// ModifyPlan checks the machine against what is known of its host and volumes. A volume never forces a replacement, whether it is known or
// unknown: RequiresReplace never has one.
func (r *virtualMachine) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if providerdata.RefuseUnread(ctx, req, &resp.Diagnostics) {
		return
	}
	if req.Plan.Raw.IsNull() {
		var state model
		resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...)
		state.warnOfLoss("Destroying", &resp.Diagnostics)
		return
	}
	var plan, state, given model
	resp.Diagnostics.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, &plan)...)
	if resp.Diagnostics.Append(tfvalue.Get(ctx, req.Config.Schema, req.Config.Raw, &given)...); resp.Diagnostics.HasError() {
		return
	}
	anywhere := false // an existing machine whose host only the apply knows
	tfvalue.CheckReserved(req, resp, "name", "name_prefix")
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, &state)...)
		anywhere = plan.Host.IsUnknown()
		plan = plan.asStays(state)
	}
	r.settleDevices(ctx, &plan, state, given, &resp.Diagnostics)
	plan.settleFilesystems(given)
	plan.warnOfBootDisk(state, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.SetAttributes(ctx, &resp.Plan, map[string]attr.Value{
		"disks": plan.Disks, "filesystems": plan.Filesystems,
	})...)
	if !r.Provider.Ready() {
		return
	}
	if !plan.Host.IsUnknown() {
		if _, err := r.Provider.Hosts.Host(plan.Host.ValueString()); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("host"), "Unknown host", err.Error())
		}
		checked := plan.withOtherImage(state)
		checked.check(ctx, &resp.Diagnostics)
		r.checkOthers(plan, &resp.Diagnostics)
		r.warnOfNetworks(ctx, plan, state, &resp.Diagnostics)
		r.planCapabilities(ctx, checked, given, &resp.Diagnostics)
		r.checkHostDevices(ctx, plan, state, &resp.Diagnostics)
	}
	if req.State.Raw.IsNull() {
		if !plan.Host.IsUnknown() && !plan.Name.IsUnknown() {
			id := types.StringValue(plan.Host.ValueString() + "/" + plan.Name.ValueString())
			resp.Diagnostics.Append(tfvalue.SetAttributes(ctx, &resp.Plan, map[string]attr.Value{"id": id})...)
		}
		return
	}
	set := r.planChange(ctx, plan, state, resp)
	plan.planRunning(ctx, state, set, req, resp)
	if anywhere {
		resp.Diagnostics.Append(tfvalue.SetAttributes(ctx, &resp.Plan, map[string]attr.Value{
			"id": types.StringUnknown(), "endpoints": types.ObjectUnknown(endpointsTypes), "addresses": types.MapUnknown(addressesType),
			"pending": types.ListUnknown(types.StringType),
		})...)
	}
	r.warnOfOpenFiles(ctx, plan, state, resp)
	r.refuseMigrated(ctx, plan, state, &resp.Diagnostics)
}

// planChange plans whether an existing machine is replaced, and returns the attributes that another spelling does not change, or that only
// the host knows.
func (r *virtualMachine) planChange(ctx context.Context, plan, state model, resp *resource.ModifyPlanResponse) map[string]attr.Value {
	was, is := state.machine(), plan.machine()
	planned := is.Type
	is.Type = r.spelling(ctx, state, was, is, !otherPlatform(was, is), &resp.Diagnostics)
	if otherMachine(was, is) {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("machine"))
	}
	by := plan.replacedBy(state, was, is)
	renames := plan.renames(state)
	if renames && r.isTaken(ctx, plan) { // the machine that has it may be about to get another one, or to go
		by, renames = append(by, path.Root("name")), false
	}
	for _, name := range []string{"name", "name_prefix"} {
		if by.Contains(path.Root(name)) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root(name))
		}
	}
	if plan.moves(state) && (len(by) > 0 || r.planMove(ctx, plan, state, &resp.Diagnostics)) {
		by, resp.RequiresReplace = append(by, path.Root("host")), append(resp.RequiresReplace, path.Root("host"))
	}
	r.planReplacement(state, by, &resp.Diagnostics)
	plan.spellInterfaces(state)
	plan.planAddresses(ctx, state, &resp.Diagnostics)
	set := map[string]attr.Value{
		"memory": state.Memory.OrSame(plan.Memory), "interfaces": plan.Interfaces, "addresses": plan.Addresses,
	}
	if !is.Type.Equal(planned) { // q35 and the type that it stands for
		fields := plan.Machine.Attributes()
		fields["type"] = is.Type
		set["machine"] = types.ObjectValueMust(plan.Machine.AttributeTypes(ctx), fields)
	}
	if plan.moves(state) || renames {
		set["id"] = types.StringValue(plan.Host.ValueString() + "/" + plan.Name.ValueString())
	}
	if !plan.MaxMemory.IsNull() {
		set["max_memory"] = state.MaxMemory.OrSame(plan.MaxMemory)
	}
	return set
}

// checkOthers refuses storage that another machine of the configuration uses in a conflicting way.
func (r *virtualMachine) checkOthers(plan model, diags *diag.Diagnostics) {
	if plan.Name.IsUnknown() && plan.NamePrefix.ValueString() == "" || diags.HasError() {
		return
	}
	by := "machine " + plan.Host.ValueString() + "/" + cmp.Or(plan.Name.ValueString(), plan.NamePrefix.ValueString()+"*")
	disks, filesystems := plan.disks(), plan.filesystems()
	for _, key := range slices.Sorted(maps.Keys(filesystems)) {
		for _, i := range filesystems[key].folder(diags).Images {
			if !r.Provider.RecordPlannedUse(providerdata.PlannedUse{By: by, Image: i}, filesystemPath(key).AtName("volume"), diags) {
				return
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		v, _, found := tfvalue.VolumeFrom(disks[key].Volume)
		diags.Append(found...)
		d := disks[key]
		use := providerdata.PlannedUse{
			By:    by,
			Reads: d.ReadOnly.ValueBool() || d.Ephemeral.ValueBool() || domainxml.IsDrive(d.Device.ValueString()),
		}
		for use.Depth, use.Image = range v.Uses() {
			// without a name it is yet to be created
			if use.Image.Name != "" && !r.Provider.RecordPlannedUse(use, diskPath(key).AtName("volume"), diags) {
				return
			}
		}
	}
}
