package domainxml

import (
	"cmp"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Tuning is how a device works, in libvirt's words. What nobody has asked for is empty, also where the device has it anyway.
type Tuning struct {
	// Serial is what the guest sees of it.
	Serial string
	// Cache, IO, Discard and ErrorPolicy are those of libvirt's <driver>.
	Cache, IO, Discard, ErrorPolicy string
	// IOThread is the number of the thread that serves it, from 1.
	IOThread uint
	// LogicalBlockSize and PhysicalBlockSize are in bytes.
	LogicalBlockSize, PhysicalBlockSize uint
}

// The names, in a disk's mark, of what was asked for.
const (
	cache             = "cache"
	discard           = "discard"
	errorPolicy       = "error_policy"
	physicalBlockSize = "physical_block_size"
	readOnly          = "read_only"
	target            = "target"
)

// asked are the names of what was asked for, of that which a device may have unasked.
func (is Disk) asked() string {
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
		{target, is.Target != ""},
	} {
		if a.is {
			names = append(names, a.name)
		}
	}
	return strings.Join(names, " ")
}

// DirectCache is the mode in which the host caches nothing.
const DirectCache = "none"

// Defaults is what the device of a disk has that nobody asked for. It is what a careful operator would choose: a guest stops on
// an error instead of seeing it, the host caches nothing of storage that others may look at, and the storage gets back what
// the guest frees. A drive has one for all of its media, since libvirt does not change it with them.
func (is Disk) Defaults() Tuning {
	t := is.required()
	if is.Device != Floppy { // QEMU's have none
		t.ErrorPolicy = "stop"
	}
	if !IsDrive(is.Device) && len(is.Volume.Images) > 0 && is.Volume.Images[0].Format == "raw" && is.Volume.Images[0].Type != "file" {
		t.Cache, t.Discard = DirectCache, "unmap"
	}
	return t
}

// required is what is usual also for a device that was made by hand, which else has what libvirt chooses. What many machines
// write must be in no host's cache: the others would not see it. And a physical block is no smaller than a logical one.
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

// libvirts is libvirt's word for its own choice, which it does not write.
const libvirts = "default"

// withDefaults is what a device has to have, virtclaim's or not.
func (is Disk) withDefaults(ours bool) Tuning {
	t, usual := is.Tuning, is.defaults(ours)
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
	d.Serial = t.Serial
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

// tuningOf is all that a device has, asked for or not.
func tuningOf(d libvirtxml.DomainDisk) Tuning {
	t := Tuning{Serial: d.Serial}
	if d.Driver != nil {
		t.Cache, t.IO, t.Discard, t.ErrorPolicy = d.Driver.Cache, d.Driver.IO, d.Driver.Discard, d.Driver.ErrorPolicy
		if d.Driver.IOThread != nil {
			t.IOThread = *d.Driver.IOThread
		}
	}
	if d.BlockIO != nil {
		t.LogicalBlockSize, t.PhysicalBlockSize = d.BlockIO.LogicalBlockSize, d.BlockIO.PhysicalBlockSize
	}
	return t
}

// parseTuning reports what was asked for, and what nobody asked for but the device would not have by itself.
func parseTuning(d libvirtxml.DomainDisk, mark diskMark, disk *Disk) {
	disk.Tuning = tuningOf(d)
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
		case mark.asks(f.name) || *f.is != f.unsaid:
			*f.is = cmp.Or(*f.is, libvirts)
		default:
			*f.is = ""
		}
	}
	if !mark.asks(physicalBlockSize) && disk.PhysicalBlockSize == usual.PhysicalBlockSize {
		disk.PhysicalBlockSize = 0
	}
}

// addIOThreads gives a domain the I/O threads that its disks name. It takes none away: other devices may have them.
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

// hasIOThread tells whether a domain has the thread of that number; 0 is none. Without numbers of their own they count from 1.
func hasIOThread(d *libvirtxml.Domain, n uint) bool {
	if n == 0 || d.IOThreadIDs == nil {
		return n <= d.IOThreads
	}
	return slices.ContainsFunc(d.IOThreadIDs.IOThreads, func(t libvirtxml.DomainIOThread) bool { return t.ID == n })
}
