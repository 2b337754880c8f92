package domainxml

import (
	"maps"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The ways in which a guest can see a volume, in libvirt's words.
const (
	// Fixed is an ordinary disk.
	Fixed = "disk"
	// LUN is a logical unit whose SCSI commands the guest sends itself.
	LUN = "lun"
	// CDROM is a drive that the guest only reads from, and whose medium changes while it runs. The drive itself stays.
	CDROM = "cdrom"
	// Floppy is another such drive. The guest can't write to what virtclaim puts there either: libvirt changes that only with
	// the drive, not with its medium.
	Floppy = "floppy"
)

// IsDrive tells whether a device is one whose medium changes, and which may be empty.
func IsDrive(device string) bool { return device == CDROM || device == Floppy }

func isDrive(d libvirtxml.DomainDisk) bool { return IsDrive(d.Device) }

// isEmpty tells whether a drive has no medium. libvirt leaves a source that names nothing in one that was emptied while
// its domain runs.
func isEmpty(d libvirtxml.DomainDisk) bool {
	s := d.Source
	return s == nil || isDrive(d) && (s.File != nil && s.File.File == "" || s.Block != nil && s.Block.Dev == "")
}

// eject takes the medium out of a drive. What is left is a file without a name, as it is in all empty drives.
func eject(d *libvirtxml.DomainDisk) {
	d.Source = &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{}}
	d.Auth, d.BackingStore = nil, nil
	if d.Driver != nil {
		d.Driver.CopyOnRead = ""
	}
}

// Drive is the element of the CD-ROM or floppy drive of that key, as a domain's XML has it, with that medium in it; with none when
// the volume has no image. ok is false when the device of that key is no drive.
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

// Inserts are the disks, by key and sorted, whose drive is empty in a running domain and whose medium want has. A floppy drive that
// was made by hand may let its guest write: it is given none, as that changes only with the drive.
func Inserts(live string, want Machine) ([]string, error) {
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
