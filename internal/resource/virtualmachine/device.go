package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// settleDevices gives the disks that have no bus in the configuration the one that their device has by default, unknown
// while the device or the machine type is, and refuses devices that the machine can't have. Terraform plans again at apply,
// when all is known, so that an apply has nothing to settle.
func (m *model) settleDevices(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) {
	var given model
	if diags.Append(config.Get(ctx, &given)...); diags.HasError() {
		return
	}
	emulated := m.emulated(ctx, given, diags)
	asked, disks := given.disks(ctx, diags), m.Disks.Elements()
	for key, element := range disks {
		if o, ok := element.(types.Object); ok && !o.IsUnknown() && asked[key].Bus.IsNull() {
			values := o.Attributes()
			values["bus"] = defaultBus(values["device"], emulated)
			disks[key] = types.ObjectValueMust(diskTypes, values)
		}
	}
	if len(disks) > 0 {
		m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)
	}
	m.checkDevices(ctx, emulated, diags)
	m.checkPorts(ctx, emulated, diags)
}

// emulated is the machine as planned. Of one that is to be made, what nobody has chosen is null.
func (m model) emulated(ctx context.Context, config model, diags *diag.Diagnostics) machineModel {
	planned, given := m.machine(ctx, diags), config.machine(ctx, diags)
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
		Type: chosen(planned.Type, given.Type), Arch: chosen(planned.Arch, given.Arch), DomainType: chosen(planned.DomainType, given.DomainType),
	}
}

func defaultBus(device attr.Value, machine machineModel) types.String {
	ide, known := machine.hasIDE()
	switch {
	case device.Equal(types.StringValue(domainxml.Fixed)):
		return types.StringValue("virtio")
	case domainxml.IsQ35(machine.Type.ValueString()) && !device.IsUnknown():
		return types.StringValue("sata")
	case device.IsUnknown() || !known:
		return types.StringUnknown()
	case ide:
		return types.StringValue("ide")
	}
	return types.StringValue("scsi")
}

// hasIDE tells whether a machine has the bus: a pc does, which is also libvirt's own choice on x86. It is not known while
// the type or the architecture is not.
func (m machineModel) hasIDE() (has, known bool) {
	isPC := m.Type.IsNull() || domainxml.SameType("pc", m.Type.ValueString())
	isX86 := m.Arch.IsNull() || slices.Contains([]string{"x86_64", "i686"}, m.Arch.ValueString())
	if !m.Type.IsUnknown() && !isPC || !m.Arch.IsUnknown() && !isX86 {
		return false, true
	}
	return true, !m.Type.IsUnknown() && !m.Arch.IsUnknown()
}

// ideDevices is how many an emulated pc can have: two on each of two channels.
const ideDevices = 4

// checkDevices refuses devices that the machine can't have, as far as they are known, whatever their volumes are.
func (m model) checkDevices(ctx context.Context, machine machineModel, diags *diag.Diagnostics) {
	disks := m.disks(ctx, diags)
	checkIDE(disks, machine, diags)
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		bus, drive := disks[key].Bus.ValueString(), disks[key].Device.ValueString() == domainxml.CDROM
		if drive && bus == "virtio" {
			diags.AddAttributeError(diskPath(key).AtName("bus"), "No CD-ROM drive on virtio",
				fmt.Sprintf("Disk %s is a cdrom, and there are no such drives on virtio. Leave the bus out, or use scsi, sata or (on a pc) ide.", key))
		}
		if drive && disks[key].Ephemeral.ValueBool() {
			diags.AddAttributeError(diskPath(key).AtName("ephemeral"), "A CD-ROM drive can't be ephemeral",
				fmt.Sprintf("Disk %s is a cdrom: its guest writes nothing that could be discarded. Leave ephemeral out.", key))
		}
	}
}

// checkIDE refuses the bus where a machine has none, and more devices than fit on it.
func checkIDE(disks map[string]diskModel, machine machineModel, diags *diag.Diagnostics) {
	has, known := machine.hasIDE()
	n := 0
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		if disks[key].Bus.ValueString() != "ide" {
			continue
		}
		if n++; n > ideDevices {
			diags.AddAttributeError(diskPath(key).AtName("bus"), "Too many devices on IDE",
				fmt.Sprintf("Disk %s is on the bus ide, where a machine has %d devices at most, and is one too many. Use sata or scsi.", key, ideDevices))
		}
		if known && !has {
			what := strings.TrimSpace(machine.Arch.ValueString() + " " + machine.Type.ValueString())
			diags.AddAttributeError(diskPath(key).AtName("bus"), "No IDE",
				fmt.Sprintf("Disk %s is on the bus ide, which only a pc has: this machine (%s) has none. Use sata or scsi.", key, what))
		}
	}
}
