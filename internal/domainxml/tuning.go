package domainxml

import (
	"cmp"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Tuning are the options of a disk's device, with libvirt's values. An option that was not configured is empty, also where the device
// has a default for it.
type Tuning struct {
	// Serial is the serial number that the guest sees.
	Serial string
	// Cache, IO, Discard and ErrorPolicy are those of libvirt's <driver>.
	Cache, IO, Discard, ErrorPolicy string
	// IOThread is the number of its I/O thread, from 1.
	IOThread uint
	// LogicalBlockSize and PhysicalBlockSize are in bytes.
	LogicalBlockSize, PhysicalBlockSize uint
	// DetectZeroes is off, on or unmap, and Queues the number of a virtio device's queues.
	DetectZeroes string
	Queues       uint
	// WWN is a world wide name: 16 hexadecimal digits.
	WWN string
	// Vendor and Product are those of a SCSI device.
	Vendor, Product string
	// RotationRate is in revolutions per minute; 1 is a disk that does not rotate.
	RotationRate uint
	// IOTune are the limits of its throughput.
	IOTune IOTune
}

// The names of configured options in a disk's metadata.
const (
	cache             = "cache"
	discard           = "discard"
	errorPolicy       = "error_policy"
	physicalBlockSize = "physical_block_size"
	readOnly          = "read_only"
	serialNumber      = "serial"
)

// configured are the names of the configured options that the device of that key may also have by default.
func (is Disk) configured(key string) string {
	var names []string
	for _, a := range []struct {
		name string
		is   bool
	}{
		{cache, is.Cache != ""},
		{discard, is.Discard != ""},
		{errorPolicy, is.ErrorPolicy != ""},
		{physicalBlockSize, is.PhysicalBlockSize != 0},
		{readOnly, is.ReadOnly},
		{serialNumber, is.Serial == key},
	} {
		if a.is {
			names = append(names, a.name)
		}
	}
	return strings.Join(names, " ")
}

// DirectCache is the mode in which the host caches nothing.
const DirectCache = "none"

// Defaults are the options of a disk's device that are not configured: a guest is paused on an I/O error instead of seeing it, the host
// does not cache storage that other hosts may read, and discard (TRIM/UNMAP) is passed on. The options of a drive are the same for all
// of its media, because libvirt does not change them with the medium.
func (is Disk) Defaults() Tuning {
	t := is.required()
	if is.Device != Floppy { // QEMU's floppy drives have no error policy
		t.ErrorPolicy = "stop"
	}
	if !IsDrive(is.Device) && len(is.Volume.Images) > 0 && is.Volume.Images[0].Format == "raw" && is.Volume.Images[0].Type != "file" {
		t.Cache, t.Discard = DirectCache, "unmap"
	}
	return t
}

// required are the defaults that also apply to a device that virtclaim has not defined, which otherwise has libvirt's. Storage that
// several machines write must not be cached by a host, because the others would not see the writes. And a physical block is never
// smaller than a logical one.
func (is Disk) required() Tuning {
	t := Tuning{PhysicalBlockSize: is.LogicalBlockSize}
	if !IsDrive(is.Device) && len(is.Volume.Images) > 0 && is.Volume.Images[0].AccessMode == volume.WriteShared {
		t.Cache = DirectCache
	}
	return t
}

func (is Disk) defaults(ours bool) Tuning {
	if ours {
		return is.Defaults()
	}
	return is.required()
}

// libvirts is libvirt's name of its own choice, which it does not write.
const libvirts = "default"

// withDefaults returns the configured options, completed by the defaults; ours is true if virtclaim has defined the device.
func (is Disk) withDefaults(ours bool) Tuning {
	t, usual := is.Tuning, is.defaults(ours)
	t.Serial = cmp.Or(t.Serial, is.DefaultSerial)
	t.Cache = cmp.Or(t.Cache, usual.Cache)
	if t.Cache == libvirts {
		t.Cache = ""
	}
	t.Discard = cmp.Or(t.Discard, usual.Discard)
	t.ErrorPolicy = cmp.Or(t.ErrorPolicy, usual.ErrorPolicy)
	t.PhysicalBlockSize = cmp.Or(t.PhysicalBlockSize, usual.PhysicalBlockSize)
	return t
}

func newDriver() *libvirtxml.DomainDiskDriver { return &libvirtxml.DomainDiskDriver{Name: "qemu"} }

// applyTuning writes only what differs.
func applyTuning(d *libvirtxml.DomainDisk, t Tuning) {
	if tuningOf(*d) == t {
		return
	}
	if d.Driver == nil {
		d.Driver = newDriver()
	}
	d.Serial, d.WWN, d.Vendor, d.Product = t.Serial, t.WWN, t.Vendor, t.Product
	if d.Target != nil {
		d.Target.RotationRate = t.RotationRate
	}
	applyIOTune(d, t.IOTune)
	d.Driver.DetectZeros, d.Driver.Queues = t.DetectZeroes, nil
	if t.Queues != 0 {
		d.Driver.Queues = &t.Queues
	}
	d.Driver.Cache, d.Driver.IO, d.Driver.Discard, d.Driver.ErrorPolicy = t.Cache, t.IO, t.Discard, t.ErrorPolicy
	d.Driver.IOThread = nil
	if t.IOThread != 0 {
		d.Driver.IOThread = &t.IOThread
	}
	var b libvirtxml.DomainDiskBlockIO
	if d.BlockIO != nil {
		b = *d.BlockIO
	}
	b.LogicalBlockSize, b.PhysicalBlockSize = t.LogicalBlockSize, t.PhysicalBlockSize
	d.BlockIO = nil
	if b != (libvirtxml.DomainDiskBlockIO{}) {
		d.BlockIO = &b
	}
}

// tuningOf are all options of a device, configured or not.
func tuningOf(d libvirtxml.DomainDisk) Tuning {
	t := Tuning{Serial: d.Serial, WWN: d.WWN, Vendor: d.Vendor, Product: d.Product, IOTune: ioTuneOf(d)}
	if d.Target != nil {
		t.RotationRate = d.Target.RotationRate
	}
	if d.Driver != nil {
		t.Cache, t.IO, t.Discard, t.ErrorPolicy = d.Driver.Cache, d.Driver.IO, d.Driver.Discard, d.Driver.ErrorPolicy
		t.DetectZeroes = d.Driver.DetectZeros
		if d.Driver.IOThread != nil {
			t.IOThread = *d.Driver.IOThread
		}
		if d.Driver.Queues != nil {
			t.Queues = *d.Driver.Queues
		}
	}
	if d.BlockIO != nil {
		t.LogicalBlockSize, t.PhysicalBlockSize = d.BlockIO.LogicalBlockSize, d.BlockIO.PhysicalBlockSize
	}
	return t
}

// parseTuning reports the configured options, and those that differ from the device's defaults.
func parseTuning(d libvirtxml.DomainDisk, metadata diskMetadata, disk *Disk) {
	disk.Tuning = tuningOf(d)
	if key := diskKey(d); hasKey(d) && disk.Serial == key && !metadata.wasConfigured(serialNumber) {
		disk.Serial, disk.DefaultSerial = "", key
	}
	usual := disk.defaults(hasKey(d))
	for _, f := range []struct {
		name   string
		is     *string
		unsaid string
	}{
		{cache, &disk.Cache, usual.Cache},
		{discard, &disk.Discard, usual.Discard},
		{errorPolicy, &disk.ErrorPolicy, usual.ErrorPolicy},
	} {
		switch {
		case metadata.wasConfigured(f.name) || *f.is != f.unsaid:
			*f.is = cmp.Or(*f.is, libvirts)
		default:
			*f.is = ""
		}
	}
	if !metadata.wasConfigured(physicalBlockSize) && disk.PhysicalBlockSize == usual.PhysicalBlockSize {
		disk.PhysicalBlockSize = 0
	}
}

// addIOThreads gives a domain the I/O threads that its disks name. It removes none, because other devices may use them.
func addIOThreads(d *libvirtxml.Domain) {
	for _, disk := range d.Devices.Disks {
		if disk.Driver == nil || disk.Driver.IOThread == nil || hasIOThread(d, *disk.Driver.IOThread) {
			continue
		}
		if d.IOThreadIDs == nil {
			d.IOThreads = *disk.Driver.IOThread
			continue
		}
		d.IOThreadIDs.IOThreads = append(d.IOThreadIDs.IOThreads, libvirtxml.DomainIOThread{ID: *disk.Driver.IOThread})
		d.IOThreads = uint(len(d.IOThreadIDs.IOThreads))
	}
}

// hasIOThread reports whether a domain has the I/O thread with that number; 0 is none. Threads without explicit numbers count from 1.
func hasIOThread(d *libvirtxml.Domain, n uint) bool {
	if n == 0 || d.IOThreadIDs == nil {
		return n <= d.IOThreads
	}
	return slices.ContainsFunc(d.IOThreadIDs.IOThreads, func(t libvirtxml.DomainIOThread) bool { return t.ID == n })
}
