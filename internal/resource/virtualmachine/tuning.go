package virtualmachine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// The values that libvirt and QEMU accept.
var (
	worldWideName = regexp.MustCompile(`^[0-9A-Fa-f]{16}$`)
	targetName    = regexp.MustCompile(`^[vshf]d[a-z]{1,2}$`)
	// libvirt 9.0 accepts a space, too, but its guest sees a backslash before it.
	diskSerial = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
	scsiName   = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
	blockSizes = []int64{512, 1024, 2048, 4096, 8192, 16384, 32768}
)

// smallestBlock is the only block size of IDE and SATA.
const smallestBlock = 512

// maxIOThreads and maxQueues exclude typing errors: a machine has as many threads as the highest number. The kernel has no more queues of
// one interface.
const (
	maxIOThreads = 256
	maxQueues    = 256
)

const (
	nativeIO   = "native"
	directSync = "directsync"
	unmap      = "unmap"
)

// checkTarget refuses a name that does not fit the device's bus. libvirt derives the controllers of IDE devices and floppy drives from the
// name.
func (d diskModel) checkTarget(key string, diags *diag.Diagnostics) {
	target, bus := d.Target.ValueString(), d.Bus.ValueString()
	if target == "" || bus == "" {
		return
	}
	prefix := domainxml.TargetPrefix(bus)
	last := map[string]string{"ide": "hdd", fdc: "fdb"}[bus]
	if strings.HasPrefix(target, prefix) && (last == "" || len(target) == len(last) && target <= last) {
		return
	}
	names := "begin with " + prefix
	if last != "" {
		names = "are " + prefix + "a to " + last
	}
	diags.AddAttributeError(diskPath(key).AtName("target"), "A target of another bus",
		fmt.Sprintf("Disk %s is on %s, where the names of targets %s, and is to be %s. Choose another name, or leave it out.", key, bus,
			names, target))
}

// serialLengths are the maximal lengths that QEMU passes on, by bus; it cuts longer ones off, or refuses them.
var serialLengths = map[string]int{"virtio": 20, "sata": 20, "ide": 20, "scsi": 36, "usb": 36}

func (d diskModel) checkSerial(key string, diags *diag.Diagnostics) {
	serial, at := d.Serial.ValueString(), diskPath(key).AtName("serial")
	limit := serialLengths[d.Bus.ValueString()]
	switch {
	case serial == "":
	case d.is(domainxml.LUN) || d.is(domainxml.Floppy):
		diags.AddAttributeError(at, "No serial number",
			fmt.Sprintf("Disk %s is a %s, which can't be given a serial number: %s. Leave it out.",
				key, d.Device.ValueString(), map[bool]string{
					true:  "its guest sees the storage's own",
					false: "floppy drives have none",
				}[d.is(domainxml.LUN)]))
	case limit > 0 && len(serial) > limit:
		diags.AddAttributeError(at, "A serial number that is too long",
			fmt.Sprintf("The serial number of disk %s has %d characters; on %s its guest would see %d of them. Shorten it.",
				key, len(serial), d.Bus.ValueString(), limit))
	}
}

// checkBlockSizes refuses block sizes of devices with a fixed one, and a physical block that is smaller than a logical one.
func (d diskModel) checkBlockSizes(key string, diags *diag.Diagnostics) {
	logical, physical := d.LogicalBlockSize, d.PhysicalBlockSize
	for name, size := range map[string]types.Int64{"logical_block_size": logical, "physical_block_size": physical} {
		if !d.Device.IsUnknown() && !d.is(domainxml.Fixed) && !size.IsNull() {
			diags.AddAttributeError(diskPath(key).AtName(name), "A device with blocks of its own",
				fmt.Sprintf("Disk %s is a %s, the size of whose blocks can't be chosen. Leave %s out.", key, d.Device.ValueString(), name))
		}
	}
	if slices.Contains([]string{"sata", "ide"}, d.Bus.ValueString()) && logical.ValueInt64() > smallestBlock {
		diags.AddAttributeError(diskPath(key).AtName("logical_block_size"), "No larger blocks on SATA and IDE",
			fmt.Sprintf("Disk %s is on %s, where logical blocks have %d bytes. Use the bus virtio, scsi or usb, or set only the physical "+
				"size.",
				key, d.Bus.ValueString(), smallestBlock))
	}
	if !physical.IsNull() && !physical.IsUnknown() && physical.ValueInt64() < logical.ValueInt64() {
		diags.AddAttributeError(diskPath(key).AtName("physical_block_size"), "Physical blocks smaller than logical ones",
			fmt.Sprintf("Disk %s has logical blocks of %d bytes, so that its physical ones can't have %d. Leave the physical size out, "+
				"and it is the same.", key, logical.ValueInt64(), physical.ValueInt64()))
	}
}

// checkErrorPolicy refuses a policy for devices for which QEMU has none.
func (d diskModel) checkErrorPolicy(key string, diags *diag.Diagnostics) {
	if d.is(domainxml.Floppy) && !d.ErrorPolicy.IsNull() {
		diags.AddAttributeError(diskPath(key).AtName("error_policy"), "No error policy of a floppy drive",
			fmt.Sprintf("Disk %s is a floppy, whose guest always sees the errors of its storage. Leave error_policy out.", key))
	}
}

// checkIOThread refuses a thread where libvirt has none. On virtio-scsi it would be the controller's, not the disk's.
func (d diskModel) checkIOThread(key string, diags *diag.Diagnostics) {
	if bus := d.Bus.ValueString(); !d.IOThread.IsNull() && bus != "" && bus != "virtio" {
		diags.AddAttributeError(diskPath(key).AtName("iothread"), "An I/O thread is for virtio",
			fmt.Sprintf("Disk %s is on %s, and only a disk on virtio can have a thread of its own. Leave iothread out, or use virtio.", key,
				bus))
	}
}

// checkFits refuses attributes that libvirt or QEMU have not for such a device, or not on its bus.
func (d diskModel) checkFits(key string, diags *diag.Diagnostics) {
	for _, rule := range []struct {
		name           string
		value          attr.Value
		devices, buses []string
	}{
		{"detect_zeroes", d.DetectZeroes, []string{domainxml.Fixed, domainxml.LUN}, nil},
		{"iotune", d.IOTune, []string{domainxml.Fixed, domainxml.LUN}, nil},
		{"queues", d.Queues, []string{domainxml.Fixed}, []string{"virtio"}},
		{"rotation_rate", d.RotationRate, []string{domainxml.Fixed}, []string{"scsi", "sata", "ide"}},
		{"vendor", d.Vendor, []string{domainxml.Fixed, domainxml.CDROM}, []string{"scsi"}},
		{"product", d.Product, []string{domainxml.Fixed, domainxml.CDROM}, []string{"scsi"}},
		{"wwn", d.WWN, []string{domainxml.Fixed, domainxml.CDROM}, []string{"scsi", "ide"}},
	} {
		device, bus := d.Device.ValueString(), d.Bus.ValueString()
		fits := (device == "" || slices.Contains(rule.devices, device)) &&
			(bus == "" || rule.buses == nil || slices.Contains(rule.buses, bus))
		if fits || rule.value.IsNull() {
			continue
		}
		is, can := "a "+device, "a "+strings.Join(rule.devices, " or a ")
		if rule.buses != nil {
			is, can = is+" on "+bus, can+" on "+strings.Join(rule.buses, ", ")
		}
		diags.AddAttributeError(diskPath(key).AtName(rule.name), "Not for such a device",
			fmt.Sprintf("Disk %s is %s, and %s is for %s. Leave it out.", key, is, rule.name, can))
	}
}
