package virtualmachine

import (
	"fmt"
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

// deviceKey matches the characters that libvirt keeps in a user alias; it silently drops others.
var deviceKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// atNextStart describes the effect of a change of a disk that libvirt can't change live.
const atNextStart = " Changes require a restart (see `pending`)."

func disksAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"disks": schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Disks, keyed by a name of your choice. The key is the disk's identity: adding one does not change the " +
			"others, nor does a replacement of the machine. Disks on `virtio`, `scsi` and `usb` are added and removed live; others, and " +
			"drives, at the next start.",
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(deviceKey, "must consist of letters, digits, _ and -")),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: diskAttributes()},
	}}
}

func diskAttributes() map[string]schema.Attribute {
	all := tuningAttributes()
	all["volume"] = schema.ObjectAttribute{
		Optional: true, AttributeTypes: tfvalue.VolumeTypes, Validators: []validator.Object{tfvalue.NoFolder{}},
		MarkdownDescription: "The volume, from a `virtclaim_volume_binding` or a `virtclaim_disk`. Changing it never replaces the " +
			"machine: in a running machine the old volume is unplugged and the new one plugged in. Only a `cdrom` or a `floppy` may " +
			"have none.",
	}
	all["device"] = schema.StringAttribute{
		Optional: true, Computed: true, Default: stringdefault.StaticString(domainxml.Fixed),
		MarkdownDescription: "Device type: `disk` (default); `lun`, a logical unit to which the guest can send SCSI commands (a " +
			"block device or iSCSI, raw); or `cdrom` or `floppy`, drives that are always read-only and may be empty. Changing the " +
			"volume of a drive changes its medium live. A new drive is added at the next start.",
		Validators: []validator.String{stringvalidator.OneOf(domainxml.Fixed, domainxml.LUN, domainxml.CDROM, domainxml.Floppy)},
	}
	all["bus"] = schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "`virtio` (default of a `disk`), `scsi` (on a virtio-scsi controller; default of a `lun`, its only " +
			"bus), `sata` (default of a `cdrom` on a machine of type `q35`), `usb`, or `ide` (default of a `cdrom` on a `pc`, the " +
			"default type on x86; only there, up to four devices). On other types a `cdrom` is on `scsi` by default. A `cdrom` can't be " +
			"on `virtio` or `usb`. A `floppy` is on `fdc`, which only a `pc` has, with up to two drives.",
		Validators: []validator.String{stringvalidator.OneOf("virtio", "scsi", "sata", "usb", "ide", fdc)},
	}
	all["target"] = schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "libvirt's name of the device, such as `vdb`. It begins with `vd` on `virtio`, `hd` on `ide`, `fd` on " +
			"`fdc`, else with `sd`, and is unique in the machine. A new disk gets the first free one, several new ones in the order of " +
			"their `boot_order` or else of their keys, and keeps it, also when the machine is replaced by one of the same `name`. The " +
			"guest chooses its own names." + atNextStart,
		Validators: []validator.String{stringvalidator.RegexMatches(targetName,
			"must be vd, sd, hd or fd and one or two letters, such as vdb")},
	}
	all["boot_order"] = schema.Int64Attribute{
		Optional: true,
		MarkdownDescription: "Boot order, from 1. Unique in the machine. Without any, and without `boot`, the machine boots from the " +
			"disk with the first `target`." +
			atNextStart,
		Validators: []validator.Int64{int64validator.AtLeast(1)},
	}
	all["ephemeral"] = schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(false),
		MarkdownDescription: "Discard what the guest wrote when the machine stops. The volume must be that of a `virtclaim_disk`: put " +
			"one with `copy_mode = \"copy-on-write\"` over a binding." +
			atNextStart,
	}
	all["read_only"] = schema.BoolAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Make the device read-only for the guest, whatever the volume's access mode allows. It does not relax " +
			"the access mode: other machines are excluded as before. Not for a `lun`, nor for a `disk` on `sata` or `ide`. A `cdrom` " +
			"and a `floppy` always are." + atNextStart,
	}
	return all
}

// tuningAttributes are the performance attributes of a device. Defaults are conservative, and not in state.
func tuningAttributes() map[string]schema.Attribute {
	text := func(description string, values ...string) schema.Attribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: description + atNextStart,
			Validators: []validator.String{stringvalidator.OneOf(values...)},
		}
	}
	blockSize := func(description string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, MarkdownDescription: description + atNextStart,
			Validators: []validator.Int64{int64validator.OneOf(blockSizes...)},
		}
	}
	scsi := func(what string, most int) schema.Attribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: fmt.Sprintf("%s that the guest sees, up to %d characters. Only for a `disk` or a `cdrom` "+
				"on `scsi`.", what, most) + atNextStart,
			Validators: []validator.String{
				stringvalidator.LengthAtMost(most), stringvalidator.RegexMatches(scsiName, "must be printable ASCII characters"),
			},
		}
	}
	return map[string]schema.Attribute{
		"serial": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Serial number that the guest sees: letters, digits and `-_.+`; up to 20 on `virtio`, `sata` and `ide`, " +
				"36 on others." + atNextStart,
			Validators: []validator.String{stringvalidator.RegexMatches(diskSerial, "must consist of letters, digits, -, _, . and +")},
		},
		"cache": text("Cache mode: `none`, `writethrough`, `writeback`, `directsync`, `unsafe` or `default`, which is QEMU's "+
			"default. Defaults to `none` for raw volumes on block devices or the network, otherwise to QEMU's default.",
			domainxml.DirectCache, "writethrough", "writeback", directSync, "unsafe", "default"),
		"io": text("Asynchronous I/O mode: `threads`, `native` (requires `cache` to be `none` or `directsync`) or `io_uring`. "+
			"Defaults to QEMU's choice.", "threads", nativeIO, "io_uring"),
		"discard": text("Discard (TRIM/UNMAP) mode: `unmap` or `ignore`. Defaults to `unmap` for raw volumes on block devices or the "+
			"network, otherwise to QEMU's default.", unmap, "ignore"),
		"error_policy": text("What happens on an I/O error of the storage: `stop` (default) pauses the guest until it is resumed; "+
			"`report` reports the error to the guest, `ignore` does not, and `enospace` pauses the guest only if there is no space "+
			"left.", "stop", "report", "ignore", "enospace"),
		"iothread": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Number of the QEMU I/O thread that serves the disk, from 1. Disks may share a thread. The machine " +
				"gets as many threads as its disks use. Only for a `disk` on `virtio`." + atNextStart,
			Validators: []validator.Int64{int64validator.Between(1, maxIOThreads)},
		},
		"logical_block_size": blockSize("Smallest unit that the guest can read or write, in bytes: a power of two from 512 to 32768. " +
			"Defaults to 512."),
		"detect_zeroes": text("What becomes of zeroes that the guest writes: `off` (default) writes them, `on` stores them in short where "+
			"the storage can, and `unmap` discards them, which requires `discard` to be `unmap`. Not for drives.", "off", "on", unmap),
		"queues": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Number of queues of the device. Defaults to QEMU's choice, one per processor. Only for a `disk` on " +
				"`virtio`." + atNextStart,
			Validators: []validator.Int64{int64validator.Between(1, maxQueues)},
		},
		"wwn": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "World wide name of the device: 16 hexadecimal digits. Only for a `disk` or a `cdrom` on `scsi` or " +
				"`ide`." + atNextStart,
			Validators: []validator.String{stringvalidator.RegexMatches(worldWideName, "must be 16 hexadecimal digits")},
		},
		"vendor":  scsi("Vendor", 8),
		"product": scsi("Product", 16),
		"rotation_rate": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "Revolutions per minute that the guest sees, from 1025 to 65534, or 1 for an SSD. Only for a `disk` on " +
				"`scsi`, `sata` or `ide`." + atNextStart,
			Validators: []validator.Int64{int64validator.Any(int64validator.OneOf(1), int64validator.Between(1025, 65534))},
		},
		"iotune": ioTuneAttribute(),
		"physical_block_size": blockSize("Unit in which the guest should write, in bytes: a power of two from 512 to 32768, not " +
			"smaller than `logical_block_size`."),
	}
}
