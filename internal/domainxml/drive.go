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

// Drive returns the element of the CD-ROM or floppy drive with that key from a domain's XML, with the given medium in it, or empty
// when the volume has no image. ok is false when the device with that key is not a drive.
func Drive(text, key string, medium volume.Volume) (element string, ok bool, err error) {
	d, err := Unmarshal(text)
	if err != nil {
		return "", false, err
	}
	for _, disk := range d.Devices.Disks {
		if diskKey(disk) != key || !isDrive(disk) {
			continue
		}
		applyVolume(&disk, medium)
		element, err := disk.Marshal()
		return element, err == nil, err
	}
	return "", false, nil
}

// MediaToInsert returns the keys, sorted, of the disks whose drive is empty in a running domain and has a medium in want. A writable floppy
// drive, which was defined outside of Terraform, is left out, because <readonly> changes only with the drive.
func MediaToInsert(live string, want Machine) ([]string, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		empty := func(k libvirtxml.DomainDisk) bool {
			return diskKey(k) == key && isDrive(k) && isEmpty(k) && isReadOnly(k)
		}
		if disk := want.Disks[key]; IsDrive(disk.Device) && len(disk.Volume.Images) > 0 && slices.ContainsFunc(d.Devices.Disks, empty) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
