package virtualmachine

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var disksGroup = group{attributes: disksAttributes, intent: disksIntent, read: readDisks, check: checkDisks}

type diskModel struct {
	Volume    types.Object `tfsdk:"volume"`
	Device    types.String `tfsdk:"device"`
	Bus       types.String `tfsdk:"bus"`
	BootOrder types.Int64  `tfsdk:"boot_order"`
	Ephemeral types.Bool   `tfsdk:"ephemeral"`
}

var diskTypes = map[string]attr.Type{
	"volume": types.ObjectType{AttrTypes: tfvalue.VolumeTypes}, "device": types.StringType,
	"bus": types.StringType, "boot_order": types.Int64Type, "ephemeral": types.BoolType,
}

// deviceKey is what libvirt keeps of a user alias; other characters it drops without a word.
var deviceKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func disksAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"disks": schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Disks, keyed by a name of your choice. The key is the disk's identity: adding one leaves the others " +
			"where they are.",
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(deviceKey, "must consist of letters, digits, _ and -")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"volume": schema.ObjectAttribute{
				Required: true, AttributeTypes: tfvalue.VolumeTypes,
				MarkdownDescription: "The volume, from a `virtclaim_volume_binding` or a `virtclaim_disk`. A changed volume never replaces the machine.",
			},
			"device": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(domainxml.Fixed),
				MarkdownDescription: "How the guest sees the volume: `disk` (default), or `cdrom`, which it can only read from, also where the " +
					"volume's access mode lets it write. Another volume of a `cdrom` is another medium in its drive, also while the machine runs. " +
					"A new drive is there at the next start.",
				Validators: []validator.String{stringvalidator.OneOf(domainxml.Fixed, domainxml.CDROM)},
			},
			"bus": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "`virtio` (default of a `disk`), `scsi` (on a virtio-scsi controller), `sata` (default of a `cdrom` on a " +
					"machine of type `q35`) or `ide` (default of a `cdrom` on a `pc`, which is x86's own type; up to four devices, and none on " +
					"other types). On all others a `cdrom` is on `scsi` by default. A `cdrom` can't be on `virtio`.",
				Validators: []validator.String{stringvalidator.OneOf("virtio", "scsi", "sata", "ide")},
			},
			"boot_order": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Place in the order of devices to boot from, from 1. Unique in the machine.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"ephemeral": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Discard what the guest wrote when the machine stops. The volume must be that of a `virtclaim_disk`.",
			},
		}},
	}}
}

// diskPath is where a disk's attribute is in the configuration.
func diskPath(key string) path.Path { return path.Root("disks").AtMapKey(key) }

// disks are the disks by key; none while the map is unknown.
func (m model) disks(ctx context.Context, diags *diag.Diagnostics) map[string]diskModel {
	disks := map[string]diskModel{}
	if !m.Disks.IsNull() && !m.Disks.IsUnknown() {
		diags.Append(m.Disks.ElementsAs(ctx, &disks, true)...)
	}
	return disks
}

func disksIntent(ctx context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	want.Disks = map[string]domainxml.Disk{}
	for key, d := range m.disks(ctx, diags) {
		want.Disks[key] = d.intent(ctx, key, diags)
	}
}

func (d diskModel) intent(ctx context.Context, key string, diags *diag.Diagnostics) domainxml.Disk {
	v, known, found := tfvalue.VolumeFrom(ctx, d.Volume)
	diags.Append(found...)
	if !known || len(v.Images) == 0 {
		diags.AddAttributeError(diskPath(key).AtName("volume"), "A volume without an image",
			fmt.Sprintf("The volume of disk %s names nothing that could be opened. Take it from a virtclaim_volume_binding or a virtclaim_disk.", key))
		v = volume.Volume{Images: []volume.Image{{}}}
	}
	return domainxml.Disk{
		Volume: v, Device: d.Device.ValueString(), Bus: d.Bus.ValueString(), BootOrder: uint(d.BootOrder.ValueInt64()),
		Ephemeral: d.Ephemeral.ValueBool(),
	}
}

// readDisks leaves null and an empty map as they are: both say that there is no disk.
func readDisks(m *model, is domainxml.Machine) {
	if len(is.Disks) == 0 && len(m.Disks.Elements()) == 0 {
		return
	}
	disks := map[string]attr.Value{}
	for key, d := range is.Disks {
		order := types.Int64Null()
		if d.BootOrder != 0 {
			order = types.Int64Value(int64(d.BootOrder))
		}
		disks[key] = types.ObjectValueMust(diskTypes, map[string]attr.Value{
			"volume": tfvalue.VolumeObject(d.Volume, tfvalue.Unknowns{}), "device": types.StringValue(d.Device),
			"bus": types.StringValue(d.Bus), "boot_order": order, "ephemeral": types.BoolValue(d.Ephemeral),
		})
	}
	m.Disks = types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks)
}
