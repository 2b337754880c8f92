package domainxml

import (
	"maps"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The kinds of device as which a guest can see a volume, in libvirt's terms.
const (
	// Fixed is an ordinary disk.
	Fixed = "disk"
	// LUN is a logical unit to which the guest sends SCSI commands itself.
	LUN = "lun"
	// CDROM is a read-only drive whose medium can be changed while the guest runs. The drive itself stays.
	CDROM = "cdrom"
	// Floppy is a drive with a changeable medium, too. The guest can't write to media that virtclaim inserts: libvirt changes
	// <readonly> only together with the drive, not with its medium.
	Floppy = "floppy"
)

// IsDrive reports whether a device is a drive whose medium can be changed, and which may be empty.
func IsDrive(device string) bool { return device == CDROM || device == Floppy }

func isDrive(d libvirtxml.DomainDisk) bool { return IsDrive(d.Device) }

// isEmpty reports whether a drive has no medium. libvirt leaves an empty <source> in a drive whose medium was ejected while its domain
// runs.
func isEmpty(d libvirtxml.DomainDisk) bool {
	s := d.Source
	return s == nil || isDrive(d) && (s.File != nil && s.File.File == "" || s.Block != nil && s.Block.Dev == "")
}

// eject removes the medium from a drive. As in all empty drives, the source becomes a file without a name.
func eject(d *libvirtxml.DomainDisk) {
	d.Source = &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{}}
	d.Auth, d.BackingStore = nil, nil
	if d.Driver != nil {
		d.Driver.CopyOnRead = ""
	}
}

// Drive returns the element of the CD-ROM or floppy drive with that key, with the given medium in it, or empty when the volume has no
// image. ok is false when the device with that key is not a drive.
func (d *Domain) Drive(key string, medium volume.Volume) (element string, ok bool, err error) {
	for _, disk := range d.xml.Devices.Disks {
		if diskKey(disk) != key || !isDrive(disk) {
			continue
		}
		if disk, err = cloneDisk(disk); err != nil {
			return "", false, err
		}
		applyVolume(&disk, medium)
		element, err := disk.Marshal()
		return element, err == nil, err
	}
	return "", false, nil
}

// cloneDisk copies an element that is about to be changed, with all that it points to.
func cloneDisk(disk libvirtxml.DomainDisk) (clone libvirtxml.DomainDisk, err error) {
	text, err := disk.Marshal()
	if err == nil {
		err = clone.Unmarshal(text)
	}
	return clone, err
}

// MediaToInsert returns the keys, sorted, of the disks whose drive is empty in a running domain and has a medium in want. A writable floppy
// drive, which was defined outside of Terraform, is left out, because <readonly> changes only with the drive.
func (d *Domain) MediaToInsert(want Machine) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		empty := func(k libvirtxml.DomainDisk) bool {
			return diskKey(k) == key && isDrive(k) && isEmpty(k) && isReadOnly(k)
		}
		if disk := want.Disks[key]; IsDrive(disk.Device) && len(disk.Volume.Images) > 0 && slices.ContainsFunc(d.xml.Devices.Disks, empty) {
			keys = append(keys, key)
		}
	}
	return keys
}
