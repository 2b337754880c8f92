package virtualmachine

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// settleDevices sets the bus, the target and read_only of disks without configured ones; a bus is unknown while the device or the machine
// type is. It refuses devices that the machine can't have. Terraform plans again at apply, when all is known, so that an apply has no
// defaults left to set.
func (r *virtualMachine) settleDevices(ctx context.Context, plan *model, state, given model, diags *diag.Diagnostics) {
	asked := plan.emulated(given)
	emulated := r.resolved(ctx, plan.Host, asked)
	chosen := given.disks()
	plan.changeDisks(func(key string, values map[string]attr.Value) {
		if chosen[key].Bus.IsNull() {
			values["bus"] = defaultBus(values["device"], emulated)
		}
		if device, ok := values["device"].(types.String); ok && chosen[key].ReadOnly.IsNull() {
			values["read_only"] = types.BoolValue(domainxml.IsDrive(device.ValueString()))
			if device.IsUnknown() {
				values["read_only"] = types.BoolUnknown()
			}
		}
	})
	plan.keepTargets(r.disksBefore(*plan, state), chosen)
	plan.checkDevices(emulated, diags)
	checkWritable(chosen, diags)
	plan.checkPorts(asked, diags)
	plan.checkFirmware(emulated, diags)
}

// emulated is the planned machine. Values of a new machine that are not configured are null.
func (m model) emulated(config model) machineModel {
	planned, given := m.machine(), config.machine()
	if config.Machine.IsUnknown() {
		return machineModel{Type: types.StringUnknown(), Arch: types.StringUnknown(), DomainType: types.StringUnknown()}
	}
	chosen := func(planned, given types.String) types.String {
		if planned.IsUnknown() && given.IsNull() {
			return types.StringNull()
		}
		return planned
	}
	return machineModel{
		Type: chosen(planned.Type, given.Type), Arch: chosen(planned.Arch, given.Arch), DomainType: chosen(planned.DomainType,
			given.DomainType),
	}
}

// fdc is the bus of floppy drives only.
const fdc = "fdc"

func defaultBus(device attr.Value, machine machineModel) types.String {
	ide, known := machine.hasIDE()
	switch {
	case device.IsUnknown():
		return types.StringUnknown()
	case device.Equal(types.StringValue(domainxml.Fixed)):
		return types.StringValue("virtio")
	case device.Equal(types.StringValue(domainxml.LUN)):
		return types.StringValue("scsi")
	case device.Equal(types.StringValue(domainxml.Floppy)):
		return types.StringValue(fdc)
	case domainxml.IsQ35(machine.Type.ValueString()):
		return types.StringValue("sata")
	case !known:
		return types.StringUnknown()
	case ide:
		return types.StringValue("ide")
	}
	return types.StringValue("scsi")
}

// hasIDE reports whether the machine has an IDE bus, as a pc does. known is false while the type or the architecture is unknown, or the
// host has not been queried for its default type.
func (m machineModel) hasIDE() (has, known bool) {
	isPC := domainxml.SameMachineType("pc", m.Type.ValueString())
	isX86 := m.Arch.IsNull() || slices.Contains([]string{"x86_64", "i686"}, m.Arch.ValueString())
	if isSet(m.Type) && !isPC || !m.Arch.IsUnknown() && !isX86 {
		return false, true
	}
	return true, isSet(m.Type) && !m.Arch.IsUnknown()
}
