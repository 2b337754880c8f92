package virtualmachine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// checkDevices refuses devices that the machine can't have, as far as they are known, independent of their volumes.
func (m model) checkDevices(machine machineModel, diags *diag.Diagnostics) {
	disks := m.disks()
	checkCount(disks, "ide", ideDevices, diags)
	checkCount(disks, fdc, floppyDrives, diags)
	checkTargets(disks, diags)
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		disks[key].check(key, machine, diags)
	}
}

// is reports whether the device is known to be of that kind.
func (d diskModel) is(device string) bool { return d.Device.ValueString() == device }

func (d diskModel) check(key string, machine machineModel, diags *diag.Diagnostics) {
	d.checkBus(key, machine, diags)
	d.checkGiven(key, diags)
	d.checkTarget(key, diags)
	d.checkSerial(key, diags)
	d.checkBlockSizes(key, diags)
	d.checkErrorPolicy(key, diags)
	d.checkIOThread(key, diags)
	d.checkFits(key, diags)
	d.checkIOTune(key, diags)
	if d.Ephemeral.ValueBool() && domainxml.IsDrive(d.Device.ValueString()) {
		diags.AddAttributeError(diskPath(key).AtName("ephemeral"), "A drive can't be ephemeral",
			fmt.Sprintf("Disk %s is a %s: its guest writes nothing that could be discarded. Leave ephemeral out.", key,
				d.Device.ValueString()))
	}
	if d.ReadOnly.ValueBool() && !d.canBeReadOnly() {
		diags.AddAttributeError(diskPath(key).AtName("read_only"), "A device that can't be read-only",
			fmt.Sprintf("Disk %s is a %s on %s, which can't be read-only in QEMU. Use a disk on virtio, scsi or usb, or the device cdrom.",
				key, d.Device.ValueString(), d.Bus.ValueString()))
	}
}

// checkWritable refuses drives that are configured not to be read-only.
func checkWritable(given map[string]diskModel, diags *diag.Diagnostics) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if d := given[key]; domainxml.IsDrive(d.Device.ValueString()) && d.ReadOnly.Equal(types.BoolValue(false)) {
			diags.AddAttributeError(diskPath(key).AtName("read_only"), "A drive is always read-only", fmt.Sprintf(
				"Disk %s is a %s, to which a guest can't write. Leave read_only out, or use the device disk.", key, d.Device.ValueString()))
		}
	}
}

// canBeReadOnly is false for disks on SATA and IDE, which are the same device in QEMU, and for logical units, because QEMU passes their
// guest's commands through.
func (d diskModel) canBeReadOnly() bool {
	bus := d.Bus.ValueString()
	return !d.is(domainxml.LUN) && (!d.is(domainxml.Fixed) || bus != "sata" && bus != "ide")
}

// checkGiven refuses a device without a volume unless it is a drive.
func (d diskModel) checkGiven(key string, diags *diag.Diagnostics) {
	if d.Volume.IsNull() && (d.is(domainxml.Fixed) || d.is(domainxml.LUN)) {
		diags.AddAttributeError(diskPath(key).AtName("volume"), "A disk without a volume",
			fmt.Sprintf("Disk %s is a %s, and only a cdrom or a floppy may be empty. Give it the volume of a virtclaim_volume_binding or "+
				"a virtclaim_disk.", key, d.Device.ValueString()))
	}
}

// checkBus refuses a bus that is not supported for the device, or that the machine doesn't have.
func (d diskModel) checkBus(key string, machine machineModel, diags *diag.Diagnostics) {
	bus, onPC := d.Bus.ValueString(), map[string]string{"ide": "No IDE", fdc: "No floppy controller"}
	refuse := func(summary, format string, args ...any) {
		at := diskPath(key).AtName("bus")
		if bus == fdc && d.is(domainxml.Floppy) {
			at = diskPath(key).AtName("device")
		}
		diags.AddAttributeError(at, summary, fmt.Sprintf("Disk %s %s", key, fmt.Sprintf(format, args...)))
	}
	switch {
	case bus == "" || d.Device.IsUnknown():
	case d.is(domainxml.CDROM) && bus == "virtio":
		refuse("No CD-ROM drive on virtio",
			"is a cdrom, and there are no such drives on virtio. Leave the bus out, or use scsi, sata or (on a pc) ide.")
	case d.is(domainxml.CDROM) && bus == "usb":
		refuse("No CD-ROM drive on USB", "is a cdrom on usb, where its guest would see a disk, whose medium could never change. Leave "+
			"the bus out, or use scsi, sata or (on a pc) ide; or a disk with read_only = true.")
	case d.is(domainxml.LUN) && bus != "scsi":
		refuse("A logical unit is on SCSI",
			"is a lun, whose guest sends it SCSI commands, and is on %s. Leave the bus out, or use the device disk.", bus)
	case d.is(domainxml.Floppy) != (bus == fdc):
		refuse("A floppy drive has a bus of its own", "is a %s on %s: only a floppy is on %s, and on nothing else. Leave the bus out.",
			d.Device.ValueString(), bus, fdc)
	case onPC[bus] != "":
		if has, known := machine.hasIDE(); known && !has {
			refuse(onPC[bus], "is on the bus %s, which only a pc has: this machine (%s) has none. Use a cdrom or a disk on sata or scsi.",
				bus, strings.TrimSpace(machine.Arch.ValueString()+" "+machine.Type.ValueString()))
		}
	}
}

// The device limits of an emulated pc: on IDE two devices on each of two channels.
const (
	ideDevices   = 4
	floppyDrives = 2
)

// checkCount refuses more devices than fit on a bus.
func checkCount(disks map[string]diskModel, bus string, limit int, diags *diag.Diagnostics) {
	n := 0
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		if disks[key].Bus.ValueString() != bus {
			continue
		}
		if n++; n > limit {
			diags.AddAttributeError(diskPath(key).AtName("bus"), "Too many devices on "+strings.ToUpper(bus),
				fmt.Sprintf("Disk %s is on the bus %s, where a machine has %d devices at most, and is one too many. Use sata or scsi.", key,
					bus, limit))
		}
	}
}

// hasBuses refuses devices and buses that the host does not support for such a machine.
func hasBuses(caps host.DomainCapabilities, want domainxml.Machine, diags *diag.Diagnostics) {
	lacks := func(has []string, asked string) bool {
		return len(has) > 0 && asked != "" && !slices.Contains(has, asked)
	}
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		if device := want.Disks[key].Device; lacks(caps.DiskDevices, device) {
			unsupported(diags, diskPath(key).AtName("device"), "device", device, caps.DiskDevices)
		}
		if bus := want.Disks[key].Bus; lacks(caps.DiskBuses, bus) {
			unsupported(diags, diskPath(key).AtName("bus"), "bus", bus, caps.DiskBuses)
		}
	}
}

// checkTargets refuses a target name of two devices. The error is at the later key, so that it is always the same.
func checkTargets(disks map[string]diskModel, diags *diag.Diagnostics) {
	first := map[types.String]string{}
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		target := disks[key].Target
		if other, taken := first[target]; taken && target.ValueString() != "" {
			diags.AddAttributeError(diskPath(key).AtName("target"), "Duplicate target",
				fmt.Sprintf("Disks %s and %s both have the target %s. Give each its own, or leave it out.", other, key,
					target.ValueString()))
			continue
		}
		first[target] = key
	}
}
