package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// settleDevices gives the disks that have no bus in the configuration the one that their device has by default, unknown
// while the device or the machine type is, and refuses devices that the machine can't have.
func (m *model) settleDevices(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) {
	var given model
	if diags.Append(config.Get(ctx, &given)...); diags.HasError() {
		return
	}
	machineType := m.machineType(ctx, given, diags)
	asked, disks := given.disks(ctx, diags), m.Disks.Elements()
	for key, element := range disks {
		if o, ok := element.(types.Object); ok && !o.IsUnknown() && asked[key].Bus.IsNull() {
			values := o.Attributes()
			values["bus"] = defaultBus(values["device"], machineType)
			disks[key] = types.ObjectValueMust(diskTypes, values)
		}
	}
	if len(disks) > 0 {
		m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)
	}
	m.checkDevices(ctx, machineType.ValueString(), diags)
}

// machineType is that of the machine as planned. One that nobody has chosen is libvirt's own, which is a pc.
func (m model) machineType(ctx context.Context, config model, diags *diag.Diagnostics) types.String {
	planned := m.machine(ctx, diags).Type
	switch {
	case config.Machine.IsUnknown():
		return types.StringUnknown()
	case planned.IsUnknown() && config.machine(ctx, diags).Type.IsNull():
		return types.StringValue("pc")
	}
	return planned
}

func defaultBus(device attr.Value, machineType types.String) types.String {
	switch {
	case device.Equal(types.StringValue(domainxml.Fixed)):
		return types.StringValue("virtio")
	case device.IsUnknown() || machineType.IsUnknown():
		return types.StringUnknown()
	case domainxml.IsQ35(machineType.ValueString()):
		return types.StringValue("sata")
	}
	return types.StringValue("ide")
}

// checkDevices refuses devices that the machine can't have, as far as they are known, whatever their volumes are.
func (m model) checkDevices(ctx context.Context, machineType string, diags *diag.Diagnostics) {
	disks := m.disks(ctx, diags)
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		bus, drive := disks[key].Bus.ValueString(), disks[key].Device.ValueString() == domainxml.CDROM
		if drive && bus == "virtio" {
			diags.AddAttributeError(diskPath(key).AtName("bus"), "No CD-ROM drive on virtio",
				fmt.Sprintf("Disk %s is a cdrom, and there are no such drives on virtio. Leave the bus out, or use scsi, sata or (not on q35) ide.", key))
		}
		if bus == "ide" && domainxml.IsQ35(machineType) {
			diags.AddAttributeError(diskPath(key).AtName("bus"), "No IDE on q35",
				fmt.Sprintf("Disk %s is on the bus ide, which a machine of type %s has not. Use sata.", key, machineType))
		}
		if drive && disks[key].Ephemeral.ValueBool() {
			diags.AddAttributeError(diskPath(key).AtName("ephemeral"), "A CD-ROM drive can't be ephemeral",
				fmt.Sprintf("Disk %s is a cdrom: its guest writes nothing that could be discarded. Leave ephemeral out.", key))
		}
	}
}
