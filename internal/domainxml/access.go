package domainxml

import (
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// access returns what a device's XML says of access to its volume: whether the guest can only read, and whether other domains may use
// the volume as well. A drive is never shareable, whatever its medium: concurrent readers don't conflict, and libvirt changes the flag
// only together with the drive.
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

// showsOtherAccess reports whether the access of a device differs from want. For a drive, and for a read-only disk that was defined
// outside of Terraform, <shareable> is ignored.
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

// isReadOnly reports whether the guest can't write to a device: libvirt makes CD-ROM drives read-only, whatever their XML says.
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
