package domainxml

import (
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// IOTuneNames are libvirt's names of a disk's limits, of its element as of its call, in the order of IOTune.
var IOTuneNames = [...]string{
	"total_bytes_sec", "read_bytes_sec", "write_bytes_sec", "total_iops_sec", "read_iops_sec", "write_iops_sec",
	"total_bytes_sec_max", "read_bytes_sec_max", "write_bytes_sec_max", "total_iops_sec_max", "read_iops_sec_max", "write_iops_sec_max",
	"total_bytes_sec_max_length", "read_bytes_sec_max_length", "write_bytes_sec_max_length",
	"total_iops_sec_max_length", "read_iops_sec_max_length", "write_iops_sec_max_length", "size_iops_sec",
}

// IOTune are the limits of a disk; 0 is none.
type IOTune [len(IOTuneNames)]uint64

// same compares the effect of limits. A length of 1 is the default, which libvirt sets where one is taken out of a running domain.
func (t IOTune) same(other IOTune) bool {
	for n, name := range IOTuneNames {
		if strings.HasSuffix(name, "_length") && t[n] <= 1 && other[n] <= 1 {
			t[n] = other[n]
		}
	}
	return t == other
}

func limits(e *libvirtxml.DomainDiskIOTune) [len(IOTuneNames)]*uint64 {
	return [...]*uint64{
		&e.TotalBytesSec, &e.ReadBytesSec, &e.WriteBytesSec, &e.TotalIopsSec, &e.ReadIopsSec, &e.WriteIopsSec,
		&e.TotalBytesSecMax, &e.ReadBytesSecMax, &e.WriteBytesSecMax, &e.TotalIopsSecMax, &e.ReadIopsSecMax, &e.WriteIopsSecMax,
		&e.TotalBytesSecMaxLength, &e.ReadBytesSecMaxLength, &e.WriteBytesSecMaxLength,
		&e.TotalIopsSecMaxLength, &e.ReadIopsSecMaxLength, &e.WriteIopsSecMaxLength, &e.SizeIopsSec,
	}
}

func ioTuneOf(d libvirtxml.DomainDisk) (t IOTune) {
	if d.IOTune != nil {
		for n, is := range limits(d.IOTune) {
			t[n] = *is
		}
	}
	return t
}

// applyIOTune keeps a group that is configured elsewhere.
func applyIOTune(d *libvirtxml.DomainDisk, t IOTune) {
	var e libvirtxml.DomainDiskIOTune
	if d.IOTune != nil {
		e = *d.IOTune
	}
	for n, is := range limits(&e) {
		*is = t[n]
	}
	d.IOTune = nil
	if e != (libvirtxml.DomainDiskIOTune{}) {
		d.IOTune = &e
	}
}

// DisksToLimit returns the keys, sorted, of the disks of a running domain whose limits differ from want, and libvirt's names of their
// targets. Drives are left out: the limits would be those of the medium.
func (d *Domain) DisksToLimit(want Machine) (keys []string, targets map[string]string) {
	targets = map[string]string{}
	for _, disk := range d.xml.Devices.Disks {
		key := diskKey(disk)
		intent, wanted := want.Disks[key]
		if !wanted || disk.Target == nil || isDrive(disk) || IsDrive(intent.Device) || ioTuneOf(disk).same(intent.IOTune) {
			continue
		}
		if is := parseDisk(disk, d.metadata.disk(key)); !is.Another(intent) || is.namesPool() {
			targets[key] = disk.Target.Dev
		}
	}
	return slices.Sorted(maps.Keys(targets)), targets
}
