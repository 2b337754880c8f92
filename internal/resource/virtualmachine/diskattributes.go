package virtualmachine

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// deviceKey is what libvirt keeps of a user alias; other characters it drops without a word.
var deviceKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// atNextStart is what a change of a running machine's disk comes to where libvirt can't change it.
const atNextStart = " Another one takes effect at the machine's next start."

func disksAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"disks": schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Disks, keyed by a name of your choice. The key is the disk's identity: adding one leaves the others " +
			"where they are. Disks on `virtio`, `scsi` and `usb` come and go while the machine runs; others, and drives, are there, or " +
			"gone, at its next start.",
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(deviceKey, "must consist of letters, digits, _ and -")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: diskAttributes()},
	}}
}

func diskAttributes() map[string]schema.Attribute {
	all := tuningAttributes()
	all["volume"] = schema.ObjectAttribute{
		Optional: true, AttributeTypes: tfvalue.VolumeTypes,
		MarkdownDescription: "The volume, from a `virtclaim_volume_binding` or a `virtclaim_disk`. A changed volume never replaces the " +
			"machine: while it runs, the old one is unplugged and the new one plugged in. Only a `cdrom` or a `floppy` may have none.",
	}
	all["device"] = schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(domainxml.Fixed),
		MarkdownDescription: "How the guest sees the volume: `disk` (default); `lun`, a logical unit that the guest sends its own SCSI commands " +
			"to (a block device or iSCSI, raw); or `cdrom` or `floppy`, drives that it can only read from, also where the volume's access " +
			"mode lets it write, and that may be empty. Another volume of a drive is another medium in it, also while the machine runs. " +
			"A new drive is there at the next start.",
		Validators: []validator.String{stringvalidator.OneOf(domainxml.Fixed, domainxml.LUN, domainxml.CDROM, domainxml.Floppy)},
	}
	all["bus"] = schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "`virtio` (default of a `disk`), `scsi` (on a virtio-scsi controller; default of a `lun`, which can be on no other), " +
			"`sata` (default of a `cdrom` on a machine of type `q35`), `usb`, or `ide` (default of a `cdrom` on a `pc`, which is x86's own " +
			"type; up to four devices, and none on other types). On all others a `cdrom` is on `scsi` by default. A `cdrom` can't be on " +
			"`virtio` or `usb`. A `floppy` is on `fdc`, which only a `pc` has, with up to two drives.",
		Validators: []validator.String{stringvalidator.OneOf("virtio", "scsi", "sata", "usb", "ide", fdc)},
	}
	all["target"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "libvirt's name of the device, such as `vdb`. It begins with `vd` on `virtio`, `hd` on `ide`, `fd` on `fdc`, else with " +
			"`sd`, and is unique in the machine. A free one if absent; the guest has names of its own." + atNextStart,
		Validators: []validator.String{stringvalidator.RegexMatches(targetName, "must be vd, sd, hd or fd and one or two letters, such as vdb")},
	}
	all["boot_order"] = schema.Int64Attribute{
		Optional:            true,
		MarkdownDescription: "Place in the order of devices to boot from, from 1. Unique in the machine." + atNextStart,
		Validators:          []validator.Int64{int64validator.AtLeast(1)},
	}
	all["ephemeral"] = schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(false),
		MarkdownDescription: "Discard what the guest wrote when the machine stops. The volume must be that of a `virtclaim_disk`." + atNextStart,
	}
	all["read_only"] = schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(false),
		MarkdownDescription: "The guest can't write to the device, whatever the volume's access mode allows. The volume stays as exclusive as it " +
			"is. Not for a `lun`, nor for a `disk` on `sata` or `ide`." + atNextStart,
	}
	return all
}

// tuningAttributes are what a device works like. Absent is what a careful operator would choose, and isn't in state.
func tuningAttributes() map[string]schema.Attribute {
	text := func(description string, values ...string) schema.Attribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: description + atNextStart, Validators: []validator.String{stringvalidator.OneOf(values...)},
		}
	}
	blockSize := func(description string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, MarkdownDescription: description + atNextStart, Validators: []validator.Int64{int64validator.OneOf(blockSizes...)},
		}
	}
	return map[string]schema.Attribute{
		"serial": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Serial number that the guest sees: letters, digits and `-_.+`; up to 20 on `virtio`, `sata` and `ide`, " +
				"36 on others." + atNextStart,
			Validators: []validator.String{stringvalidator.RegexMatches(diskSerial, "must consist of letters, digits, -, _, . and +")},
		},
		"cache": text("What the host caches: `none`, `writethrough`, `writeback`, `directsync`, `unsafe` or `default`, which is QEMU's own choice. If "+
			"absent, `none` for raw volumes on block devices or the network, else QEMU's own choice.",
			domainxml.DirectCache, "writethrough", "writeback", directSync, "unsafe", "default"),
		"io": text("How QEMU asks the host: `threads`, `native` (needs the `cache` to be `none` or `directsync`) or `io_uring`. QEMU's own choice "+
			"if absent.", "threads", nativeIO, "io_uring"),
		"discard": text("Whether the storage gets back what the guest frees: `unmap` or `ignore`. If absent, `unmap` for raw volumes on block devices "+
			"or the network, else QEMU's own choice.", "unmap", "ignore"),
		"error_policy": text("What happens on an error of the storage: `stop` (default) halts the guest, which goes on when it is resumed; `report` "+
			"tells the guest, `ignore` doesn't, and `enospace` halts it only when there is no space left.", "stop", "report", "ignore", "enospace"),
		"iothread": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Number of the thread of QEMU's that serves the disk, from 1. Disks may share one. The machine gets as many threads as " +
				"its disks name. Only for a `disk` on `virtio`." + atNextStart,
			Validators: []validator.Int64{int64validator.Between(1, maxIOThreads)},
		},
		"logical_block_size": blockSize("Smallest unit that the guest can read or write, in bytes: a power of two from 512 to 32768. 512 if absent."),
		"physical_block_size": blockSize("Unit in which the guest had better write, in bytes: a power of two from 512 to 32768, and no smaller than the " +
			"logical one."),
	}
}
