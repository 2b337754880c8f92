package domainxml

import (
	"cmp"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// DiskXML is the <disk> element that opens v for reading only, as target vda. It serves to ask QEMU about a volume.
func DiskXML(v volume.Volume) (string, error) {
	d := libvirtxml.DomainDisk{Device: "disk", Target: &libvirtxml.DomainDiskTarget{Dev: "vda", Bus: "virtio"}}
	applyVolume(&d, v)
	d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	if v.Images[0].Format == "raw" {
		d.Shareable = &libvirtxml.DomainDiskShareable{} // QEMU locks files: a machine may have it
	}
	return d.Marshal()
}

// applyVolume makes a device open v.
func applyVolume(d *libvirtxml.DomainDisk, v volume.Volume) {
	if len(v.Images) == 0 {
		eject(d)
		return
	}
	top := v.Images[0]
	d.Source = source(top)
	d.Auth = nil // old definitions have it beside the source
	d.BackingStore = backing(v.Images[1:])
	if d.Driver == nil {
		d.Driver = newDriver(d.Device, top)
	}
	d.Driver.Type = top.Format
	d.Driver.CopyOnRead = ""
	if v.CopyOnRead && !isDrive(*d) { // libvirt refuses it for what is only read from
		d.Driver.CopyOnRead = "on"
	}
	applyAccess(d, top.AccessMode)
}

// applyAccess says who else may use a device. What many machines write must be in no host's cache: the others would not
// see it. A drive is shared with nobody, whatever its medium: readers don't mind each other, and libvirt changes that only
// with the drive.
func applyAccess(d *libvirtxml.DomainDisk, mode volume.AccessMode) {
	if isDrive(*d) {
		d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
		return
	}
	d.ReadOnly, d.Shareable = nil, nil
	switch mode {
	case volume.ReadShared:
		d.ReadOnly, d.Shareable = &libvirtxml.DomainDiskReadOnly{}, &libvirtxml.DomainDiskShareable{}
	case volume.WriteShared:
		d.Shareable = &libvirtxml.DomainDiskShareable{}
		d.Driver.Cache = "none"
	case volume.WriteExclusive:
	}
}

func parseAccess(d libvirtxml.DomainDisk) volume.AccessMode {
	switch {
	case d.ReadOnly != nil || isDrive(d):
		return volume.ReadShared
	case d.Shareable != nil:
		return volume.WriteShared
	}
	return volume.WriteExclusive
}

// newDriver has the defaults of a careful operator: a guest stops on an error instead of seeing it, the host caches
// nothing of storage that others may look at, and the storage gets back what the guest frees. A drive has one for all of
// its media, since libvirt does not change it with them.
func newDriver(device string, top volume.Image) *libvirtxml.DomainDiskDriver {
	d := &libvirtxml.DomainDiskDriver{Name: "qemu", ErrorPolicy: "stop"}
	if device != CDROM && top.Format == "raw" && top.Type != "file" {
		d.Cache, d.Discard = "none", "unmap"
	}
	return d
}

func backing(images []volume.Image) *libvirtxml.DomainDiskBackingStore {
	if len(images) == 0 {
		return nil
	}
	next := backing(images[1:])
	if next == nil {
		next = &libvirtxml.DomainDiskBackingStore{} // ends the chain: libvirt must not probe any further
	}
	return &libvirtxml.DomainDiskBackingStore{
		Format:       &libvirtxml.DomainDiskFormat{Type: images[0].Format},
		Source:       source(images[0]),
		BackingStore: next,
	}
}

func source(i volume.Image) *libvirtxml.DomainDiskSource {
	switch i.Type {
	case "network":
		return networkSource(i)
	case "block":
		return &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: i.Name}}
	default:
		return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: i.Name}}
	}
}

// parseVolume reads what the XML of a device tells of its volume; the metadata adds the rest.
func parseVolume(d libvirtxml.DomainDisk) volume.Volume {
	top := parseSource(d.Source)
	if d.Auth != nil {
		top.Auth = parseAuth(d.Auth)
	}
	top.Format = "raw"
	var v volume.Volume
	if d.Driver != nil {
		top.Format = cmp.Or(d.Driver.Type, "raw")
		v.CopyOnRead = d.Driver.CopyOnRead == "on"
	}
	top.AccessMode = parseAccess(d)
	v.Images = append(v.Images, top)
	// libvirtxml gives an empty <backingStore/> a source, too; only a format tells a real one.
	for b := d.BackingStore; b != nil && b.Format != nil; b = b.BackingStore {
		image := parseSource(b.Source)
		image.Format = b.Format.Type
		image.AccessMode = volume.ReadShared
		v.Images = append(v.Images, image)
	}
	if d.Transient != nil && isDiscarded(v.Images) {
		v.Images = v.Images[1:]
		v.Images[0].AccessMode = top.AccessMode
	}
	return v
}

// isDiscarded tells whether the top image is the one that libvirt lays over an ephemeral disk while its domain runs.
func isDiscarded(images []volume.Image) bool {
	return len(images) > 1 && strings.HasPrefix(images[0].Name, images[1].Name+".TRANSIENT-")
}

func parseSource(s *libvirtxml.DomainDiskSource) volume.Image {
	switch {
	case s == nil:
		return volume.Image{Type: "file"}
	case s.Network != nil:
		return parseNetwork(s)
	case s.Block != nil:
		return volume.Image{Type: "block", Name: s.Block.Dev}
	case s.Volume != nil:
		return volume.Image{Type: "volume", Name: s.Volume.Pool + "/" + s.Volume.Volume}
	case s.File != nil:
		return volume.Image{Type: "file", Name: s.File.File}
	}
	return volume.Image{Type: "file"}
}
