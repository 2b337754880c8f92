package domainxml

import (
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// access is what a device says of who may use its volume: whether the guest can only read, and whether others may use it,
// too. A drive is shared with nobody, whatever its medium: readers don't mind each other, and libvirt changes that only with
// the drive.
func (is Disk) access() (readOnly, shareable bool) {
	if IsDrive(is.Device) {
		return true, false
	}
	mode := volume.WriteExclusive
	if len(is.Volume.Images) > 0 {
		mode = is.Volume.Images[0].AccessMode
	}
	return is.ReadOnly || mode == volume.ReadShared, mode == volume.ReadShared || mode == volume.WriteShared
}

// showsOtherAccess tells whether a device says otherwise than want. A drive, and a read-only disk made by hand, may be shared
// or not.
func showsOtherAccess(d libvirtxml.DomainDisk, want Disk) bool {
	readOnly, shareable := want.access()
	if isDrive(d) || readOnly && !hasKey(d) {
		return isReadOnly(d) != readOnly
	}
	return isReadOnly(d) != readOnly || (d.Shareable != nil) != shareable
}

func applyAccess(d *libvirtxml.DomainDisk, want Disk) {
	readOnly, shareable := want.access()
	d.ReadOnly = nil
	if readOnly {
		d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
	if isDrive(*d) {
		return
	}
	d.Shareable = nil
	if shareable {
		d.Shareable = &libvirtxml.DomainDiskShareable{}
	}
}

// isReadOnly tells whether a guest can't write through a device: libvirt makes a CD-ROM drive so, whatever its XML says.
func isReadOnly(d libvirtxml.DomainDisk) bool { return d.ReadOnly != nil || d.Device == CDROM }

func parseAccess(d libvirtxml.DomainDisk) volume.AccessMode {
	switch {
	case isReadOnly(d):
		return volume.ReadShared
	case d.Shareable != nil:
		return volume.WriteShared
	}
	return volume.WriteExclusive
}
