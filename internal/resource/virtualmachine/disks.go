package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var disksGroup = attributeGroup{attributes: disksAttributes, intent: disksIntent, read: readDisks, check: checkDisks, able: hasBuses}

type diskModel struct {
	Volume            types.Object `tfsdk:"volume"`
	Device            types.String `tfsdk:"device"`
	Bus               types.String `tfsdk:"bus"`
	Target            types.String `tfsdk:"target"`
	BootOrder         types.Int64  `tfsdk:"boot_order"`
	Ephemeral         types.Bool   `tfsdk:"ephemeral"`
	ReadOnly          types.Bool   `tfsdk:"read_only"`
	Serial            types.String `tfsdk:"serial"`
	Cache             types.String `tfsdk:"cache"`
	IO                types.String `tfsdk:"io"`
	Discard           types.String `tfsdk:"discard"`
	ErrorPolicy       types.String `tfsdk:"error_policy"`
	IOThread          types.Int64  `tfsdk:"iothread"`
	LogicalBlockSize  types.Int64  `tfsdk:"logical_block_size"`
	PhysicalBlockSize types.Int64  `tfsdk:"physical_block_size"`
	DetectZeroes      types.String `tfsdk:"detect_zeroes"`
	Queues            types.Int64  `tfsdk:"queues"`
	WWN               types.String `tfsdk:"wwn"`
	Vendor            types.String `tfsdk:"vendor"`
	Product           types.String `tfsdk:"product"`
	RotationRate      types.Int64  `tfsdk:"rotation_rate"`
	IOTune            types.Object `tfsdk:"iotune"`
}

var diskTypes = attributesOf(disksAttributes()["disks"].GetType())

// diskPath is the path of a disk in the configuration.
func diskPath(key string) path.Path { return path.Root("disks").AtMapKey(key) }

// disks are the disks by key; none while the map is unknown. One that is unknown itself has no attributes.
func (m model) disks() map[string]diskModel {
	all := map[string]diskModel{}
	for key, element := range m.Disks.Elements() {
		o, _ := element.(types.Object)
		all[key] = tfvalue.Fields[diskModel](o)
	}
	return all
}

func disksIntent(ctx context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	want.Disks = map[string]domainxml.Disk{}
	for key, d := range m.disks() {
		want.Disks[key] = d.intent(ctx, key, diags)
	}
}

func (d diskModel) intent(_ context.Context, key string, diags *diag.Diagnostics) domainxml.Disk {
	v, known, found := tfvalue.VolumeFrom(d.Volume)
	diags.Append(found...)
	// A refresh shows a drive without an image if its media in the two definitions differ (see diskObject), and ignore_changes may keep
	// that.
	mayBeEmpty := (d.Volume.IsNull() || known) && domainxml.IsDrive(d.Device.ValueString())
	if !mayBeEmpty && (!known || len(v.Images) == 0) {
		diags.AddAttributeError(diskPath(key).AtName("volume"), "A volume without an image",
			fmt.Sprintf("The volume of disk %s names nothing that could be opened. Take it from a virtclaim_volume_binding or a "+
				"virtclaim_disk.", key))
		v = volume.Volume{Images: []volume.Image{{}}}
	}
	if d.Bus.IsUnknown() {
		diags.AddAttributeError(diskPath(key).AtName("bus"), "A bus that is not known",
			fmt.Sprintf("The bus of disk %s depends on the machine type, and the host did not say which one it chooses. Apply again when "+
				"it answers, or set machine.type.", key))
	}
	return domainxml.Disk{
		Volume: v, Device: d.Device.ValueString(), Bus: d.Bus.ValueString(), Target: d.Target.ValueString(),
		BootOrder: uint(d.BootOrder.ValueInt64()), Ephemeral: d.Ephemeral.ValueBool(),
		ReadOnly: d.ReadOnly.ValueBool() && !domainxml.IsDrive(d.Device.ValueString()), // which libvirt makes read-only itself
		Tuning: domainxml.Tuning{
			Serial: d.Serial.ValueString(), Cache: d.Cache.ValueString(), IO: d.IO.ValueString(), Discard: d.Discard.ValueString(),
			ErrorPolicy: d.ErrorPolicy.ValueString(), IOThread: uint(d.IOThread.ValueInt64()),
			LogicalBlockSize: uint(d.LogicalBlockSize.ValueInt64()), PhysicalBlockSize: uint(d.PhysicalBlockSize.ValueInt64()),
			DetectZeroes: d.DetectZeroes.ValueString(), Queues: uint(d.Queues.ValueInt64()), WWN: d.WWN.ValueString(),
			Vendor: d.Vendor.ValueString(), Product: d.Product.ValueString(),
			RotationRate: uint(d.RotationRate.ValueInt64()), IOTune: ioTuneOf(d.IOTune),
		},
	}
}

// readDisks keeps null or an empty map, which both mean that there is no disk.
func readDisks(m *model, is domainxml.Machine) {
	if len(is.Disks) == 0 && len(m.Disks.Elements()) == 0 {
		return
	}
	disks := map[string]attr.Value{}
	for key, d := range is.Disks {
		for n := range d.Volume.Images { // those of a domain that virtclaim has not defined are for the host that has it
			if i := &d.Volume.Images[n]; i.Hosts == nil && is.Metadata.Phase == "" {
				i.Hosts = []string{m.Host.ValueString()}
			}
		}
		disks[key] = m.withKeptVolume(key, is)
	}
	m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)
}

// diskObject has null for what is not configured, and for the volume of an empty drive. A conflicting disk has a volume without images,
// which can't be configured, so that the plan has a change.
func diskObject(d domainxml.Disk) attr.Value {
	v := types.ObjectNull(tfvalue.VolumeTypes)
	if len(d.Volume.Images) > 0 || d.Conflicting {
		v = tfvalue.VolumeObject(d.Volume, tfvalue.Unknowns{})
	}
	return types.ObjectValueMust(diskTypes, map[string]attr.Value{
		"volume": v, "device": types.StringValue(d.Device), "bus": types.StringValue(d.Bus), "target": tfvalue.OrNull(d.Target),
		"boot_order": numberOrNull(d.BootOrder), "ephemeral": types.BoolValue(d.Ephemeral),
		"read_only": types.BoolValue(d.ReadOnly || domainxml.IsDrive(d.Device)),
		"serial":    tfvalue.OrNull(d.Serial), "cache": tfvalue.OrNull(d.Cache), "io": tfvalue.OrNull(d.IO),
		"discard":      tfvalue.OrNull(d.Discard),
		"error_policy": tfvalue.OrNull(d.ErrorPolicy), "iothread": numberOrNull(d.IOThread),
		"logical_block_size": numberOrNull(d.LogicalBlockSize), "physical_block_size": numberOrNull(d.PhysicalBlockSize),
		"detect_zeroes": tfvalue.OrNull(d.DetectZeroes), "queues": numberOrNull(d.Queues), "wwn": tfvalue.OrNull(d.WWN),
		"vendor": tfvalue.OrNull(d.Vendor), "product": tfvalue.OrNull(d.Product),
		"rotation_rate": numberOrNull(d.RotationRate), "iotune": ioTuneObject(d.IOTune),
	})
}

// withKeptVolume is a disk as read from the host, but with the volume in state if its chain was changed outside of Terraform: that volume
// still exists and is to be restored. The defaults of cache and discard depend on the volume, and are not those of the chain.
func (m model) withKeptVolume(key string, is domainxml.Machine) attr.Value {
	now := diskObject(is.Disks[key])
	was, had := m.Disks.Elements()[key].(types.Object)
	object, ok := now.(types.Object)
	if _, changed := is.External[key]; !changed || !had || !ok {
		return now
	}
	values := object.Attributes()
	for _, name := range []string{"volume", "cache", "discard"} {
		values[name] = was.Attributes()[name]
	}
	return types.ObjectValueMust(diskTypes, values)
}
