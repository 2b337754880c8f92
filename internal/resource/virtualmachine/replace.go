package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
)

// asStays is the plan of an existing machine with the host and name of the state while those are unknown. If they turn out to be different,
// that is an error.
func (m model) asStays(state model) model {
	orState := func(is, was types.String) types.String {
		if is.IsUnknown() {
			return was
		}
		return is
	}
	m.Host, m.Name = orState(m.Host, state.Host), orState(m.Name, state.Name)
	return m
}

// replacedBy are the attributes that are known to require a replacement; was and is are the emulated machines. Another host is none, unless
// the machine can't be moved there.
func (m model) replacedBy(state model, was, is machineModel) (paths path.Paths) {
	if !m.Name.Equal(state.Name) && !m.renames(state) {
		paths = append(paths, path.Root("name"))
	}
	if m.hasOtherPrefix(state) {
		paths = append(paths, path.Root("name_prefix"))
	}
	if otherMachine(was, is) {
		paths = append(paths, path.Root("machine"))
	}
	return paths
}

// renames reports whether the machine gets another name in place: libvirt renames a domain only while it is off, and not on its way to
// another host. It gives one with UEFI a new file for its variables, and leaves the old one (seen in 9.0).
func (m model) renames(state model) bool {
	return !m.Name.Equal(state.Name) && !state.Running.ValueBool() && m.Host.Equal(state.Host) && !state.hasVariables()
}

// hasVariables reports whether the machine's firmware keeps variables in a file.
func (m model) hasVariables() bool {
	return isSet(m.Firmware) && m.Firmware.Attributes()["type"].Equal(types.StringValue(domainxml.UEFI))
}

// isTaken reports whether the host has a domain of the machine's name.
func (r *virtualMachine) isTaken(ctx context.Context, plan model) bool {
	h, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	if err == nil {
		_, err = h.LookupByName(ctx, plan.Name.ValueString())
	}
	return err == nil
}

// rename renames the machine, and notes that in the state, also if the rest of the update fails.
func (r *virtualMachine) rename(ctx context.Context, plan model, state *model, mgr machine.Manager, to *tfsdk.State,
	diags *diag.Diagnostics,
) bool {
	if !plan.renames(*state) {
		return true
	}
	if err := mgr.Rename(ctx, plan.UUID.ValueString(), plan.Name.ValueString()); err != nil {
		addError(diags, *state, "The machine could not be renamed", err)
		return false
	}
	r.Provider.ReleaseName(state.Host.ValueString() + "/" + state.Name.ValueString())
	state.Name, state.ID = plan.Name, types.StringValue(plan.Host.ValueString()+"/"+plan.Name.ValueString())
	diags.Append(to.SetAttribute(ctx, path.Root("name"), state.Name)...)
	diags.Append(to.SetAttribute(ctx, path.Root("id"), state.ID)...)
	return !diags.HasError()
}

// planReplacement warns of what is lost with a replaced machine. During an apply a replacement can't be planned any more, and is an error.
func (r *virtualMachine) planReplacement(state model, by path.Paths, diags *diag.Diagnostics) {
	switch {
	case len(by) == 0:
	case r.Provider.IsApplying():
		addChanged(diags, state, by)
	case r.Provider.HasRefreshed():
		state.warnOfLoss("Replacing", diags)
	default: // it may be the plan that Terraform makes while it applies
		state.warnOfLoss("Replacing", diags)
		diags.AddWarning("Machine "+state.ID.ValueString()+" is replaced", "If Terraform stops with an inconsistent final plan, the plan "+
			"before could not know that, and nothing was changed. Plan and apply again: the plan will say that the machine is replaced.")
	}
}

// addChanged is the error of a machine that turns out to need a replacement during the apply.
func addChanged(diags *diag.Diagnostics, state model, by path.Paths) {
	for _, p := range by {
		diags.AddAttributeError(p, "The machine changed during the apply", fmt.Sprintf(
			"%s of machine %s could not be known by the plan, and turns out to make it another machine. Nothing was changed. Plan and "+
				"apply again: the plan will say that the machine is replaced.", p, state.ID.ValueString()))
	}
}
