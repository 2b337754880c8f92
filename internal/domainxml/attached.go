package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Attached is a device of a domain, of any kind, with what it opens.
type Attached struct {
	// Key is virtclaim's name of it, or its target's.
	Key string
	// Target is libvirt's name of it, such as vda.
	Target string
	// Boots tells that the domain boots from it: it has a boot order; or no device has one, no kernel is given, and it is
	// the first disk. libvirt's own <boot dev='hd'/> says nothing.
	Boots bool
	// Pluggable tells that it can be unplugged from a running guest, and plugged in again.
	Pluggable bool
	// Drive tells that it is the medium of a CD-ROM or floppy drive: a running guest can lose that, and keeps the drive.
	Drive bool
	// ReadOnly tells that the guest can't write to it, whatever its volume allows.
	ReadOnly bool
	// Ephemeral tells that what the guest writes is discarded when it stops: while it runs, the volume is only read.
	Ephemeral bool
	// Volume is what it opens, top first, with what virtclaim's metadata add to it.
	Volume volume.Volume
	// Noted is what virtclaim's metadata have of its volume when it opens nothing of that: a definition does not tell what is below an overlay that
	// was made while the domain was off.
	Noted []volume.Image
}

// Writes tells whether the guest can write to what the device opens, so that it stays.
func (a Attached) Writes() bool {
	return len(a.Volume.Images) > 0 && a.Volume.Images[0].AccessMode != volume.ReadShared && !a.ReadOnly && !a.Ephemeral && !a.Drive
}

// AttachedTo lists what a domain's XML, stored or live, has, also what a block job copies a disk to and what is passed
// through, and virtclaim's mark of the domain; a domain that is not virtclaim's has none.
func AttachedTo(text string) ([]Attached, Mark, error) {
	d, err := Unmarshal(text)
	if err != nil {
		return nil, Mark{}, err
	}
	mark, err := parseMark(d)
	if err != nil {
		return nil, Mark{}, err
	}
	var all []Attached
	for i, disk := range d.Devices.Disks {
		if isEmpty(disk) {
			continue
		}
		key := diskKey(disk)
		a := Attached{
			Key: key, Boots: boots(d, i), Pluggable: isPluggable(disk), Drive: isDrive(disk), ReadOnly: isReadOnly(disk),
			Ephemeral: disk.Transient != nil, Volume: parseDisk(disk, mark.disk(key)).Volume,
		}
		a.Noted = mark.disk(key).missing(disk, a.Volume.Images)
		if disk.Target != nil {
			a.Target = disk.Target.Dev
		}
		all = append(all, a)
		if disk.Mirror != nil && disk.Mirror.Source != nil {
			a.Key += " (what it is copied to)"
			a.Pluggable, a.Volume = false, volume.Volume{Images: []volume.Image{writer(parseSource(disk.Mirror.Source))}}
			all = append(all, a)
		}
	}
	return append(all, passedThrough(d)...), mark.Mark, nil
}

// passedThrough are the logical units that a domain has as SCSI devices, without QEMU's block layer in between.
func passedThrough(d *libvirtxml.Domain) (all []Attached) {
	for _, h := range d.Devices.Hostdevs {
		if h.SubsysSCSI == nil || h.SubsysSCSI.Source == nil || h.SubsysSCSI.Source.ISCSI == nil {
			continue
		}
		name := h.SubsysSCSI.Source.ISCSI.Name
		image := writer(volume.Image{Type: "network", Protocol: "iscsi", Format: "raw", Name: name})
		all = append(all, Attached{Key: name, Target: name, Volume: volume.Volume{Images: []volume.Image{image}}})
	}
	return all
}

func writer(i volume.Image) volume.Image {
	i.AccessMode = volume.WriteExclusive
	return i
}

// boots tells whether a domain boots from its nth disk.
func boots(d *libvirtxml.Domain, n int) bool {
	if d.Devices.Disks[n].Boot != nil {
		return true
	}
	return !hasBootOrder(d) && d.OS.Kernel == "" && n == slices.IndexFunc(d.Devices.Disks, isFixed)
}

// hasBootOrder tells whether a device of a domain has a place in the order to boot from.
func hasBootOrder(d *libvirtxml.Domain) bool {
	return slices.ContainsFunc(d.Devices.Disks, func(k libvirtxml.DomainDisk) bool { return k.Boot != nil }) ||
		slices.ContainsFunc(d.Devices.Interfaces, func(i libvirtxml.DomainInterface) bool { return i.Boot != nil })
}

// pluggableBuses are those that a running guest can lose a fixed disk from: QEMU refuses it for SATA and IDE.
var pluggableBuses = []string{"virtio", "scsi", "usb"}

func isPluggable(d libvirtxml.DomainDisk) bool {
	return isFixed(d) && d.Target != nil && slices.Contains(pluggableBuses, d.Target.Bus)
}

// Device is the element of the device of that key, as a domain's XML has it; ok is false when it has none, or only an
// empty drive.
func Device(text, key string) (element string, ok bool, err error) {
	d, err := Unmarshal(text)
	if err != nil {
		return "", false, err
	}
	for _, disk := range d.Devices.Disks {
		if diskKey(disk) == key && (!isDrive(disk) || !isEmpty(disk)) {
			element, err := disk.Marshal()
			return element, err == nil, err
		}
	}
	return "", false, nil
}
