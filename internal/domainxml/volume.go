package domainxml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// DiskXML returns the <disk> element that opens v read-only, as target vda. It serves to query QEMU about a volume.
func DiskXML(v volume.Volume) (string, error) {
	d := diskOf(v)
	d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	if v.Images[0].Format == "raw" {
		d.Shareable = &libvirtxml.DomainDiskShareable{} // QEMU locks files, and a running machine may have this one open
	}
	return d.Marshal()
}

// PartXML is DiskXML for n bytes of a raw image.
func PartXML(v volume.Volume, offset, n int64) (string, error) {
	d := diskOf(v)
	d.ReadOnly, d.Shareable = &libvirtxml.DomainDiskReadOnly{}, &libvirtxml.DomainDiskShareable{}
	d.Source.Slices = &libvirtxml.DomainDiskSlices{Slices: []libvirtxml.DomainDiskSlice{{
		Type: "storage", Offset: uint(offset),
		Size: uint(n),
	}}}
	return d.Marshal()
}

// WritableDiskXML returns the <disk> element that opens v exclusively and for writing, as target vda.
func WritableDiskXML(v volume.Volume) (string, error) {
	d := diskOf(v)
	return d.Marshal()
}

// GuestDiskXML returns the <disk> element with which a new machine has v as its disk vda on the bus virtio, under v's access mode, but
// without the alias that would make it one of virtclaim's disks: others define the domain. A volume that such an element can't name,
// such as a folder, is an error.
func GuestDiskXML(v volume.Volume) (string, error) {
	switch {
	case len(v.Images) == 0:
		return "", errors.New("the volume has no images: pass the whole volume of a binding, a disk or a content")
	case v.Images[0].IsFolder():
		return "", fmt.Errorf("%.80q is a folder, which is no disk: guests have it by filesystems of their machine", v.Images[0].URI())
	}
	d := libvirtxml.DomainDisk{Device: Fixed, Alias: &libvirtxml.DomainAlias{Name: diskAlias}} // as those that get our defaults
	want := Disk{Volume: v, Device: Fixed, Bus: "virtio", Target: "vda"}
	applyDisk(&d, want)
	d.Alias = nil
	text, err := d.Marshal()
	var read libvirtxml.DomainDisk
	if err == nil {
		err = read.Unmarshal(text)
	}
	if err != nil {
		return "", err
	}
	is := parseDisk(read, diskMetadata{})
	isNowhere := func(i volume.Image) bool { return i.URI() == "" }
	if !sameDevice(is, want) || is.Volume.Images[0].AccessMode != v.Images[0].AccessMode || slices.ContainsFunc(v.Images, isNowhere) {
		return "", fmt.Errorf("the XML of a disk can't say all of the volume at %.80q: pass a volume as its resource has it, with the "+
			"uri, the format and the access mode of each image", v.Images[0].URI())
	}
	return text, nil
}

// ReaderXML returns the <disk> element that opens a file read-only and as raw, whatever its header says, as target vda. The lock of a
// QEMU process that writes to the file refuses it unless shared is set. keepsOwner prevents libvirt's DAC driver from changing the
// owner of the file, which may have been replaced by a link, to QEMU's user; only hosts with that driver accept it.
func ReaderXML(path string, shared, keepsOwner bool) string {
	d := diskOf(volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: path}}})
	if keepsOwner {
		d.Source.File.SecLabel = []libvirtxml.DomainDeviceSecLabel{{Model: "dac", Relabel: "no"}}
	}
	d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	if shared {
		d.Shareable = &libvirtxml.DomainDiskShareable{}
	}
	text, _ := d.Marshal() // none of its elements can fail to marshal
	return text
}

func diskOf(v volume.Volume) libvirtxml.DomainDisk {
	d := libvirtxml.DomainDisk{Device: "disk", Target: &libvirtxml.DomainDiskTarget{Dev: "vda", Bus: "virtio"}}
	applyVolume(&d, v)
	applyTuning(&d, Disk{Volume: v, Device: Fixed}.Defaults())
	return d
}

// applyVolume makes a device open v, or empties it if v has no image.
func applyVolume(d *libvirtxml.DomainDisk, v volume.Volume) {
	if len(v.Images) == 0 {
		eject(d)
		return
	}
	top := v.Images[0]
	d.Source = source(top)
	d.Auth = nil // old definitions have it outside of the source
	d.BackingStore = backing(v.Images[1:])
	endChain(d, v)
	if d.Driver == nil {
		d.Driver = newDriver()
	}
	d.Driver.Type = top.Format
	d.Driver.CopyOnRead = ""
	if v.CopyOnRead && !isDrive(*d) { // libvirt refuses it for read-only devices
		d.Driver.CopyOnRead = "on"
	}
}

// endChain terminates the chain of an image that is known to have no backing file, whatever its header names by now: a guest may have
// written to it, and libvirt would have QEMU open the file that it names. A disk's header was checked before this definition. Images
// that virtclaim did not create are left to their header.
func endChain(d *libvirtxml.DomainDisk, v volume.Volume) {
	if len(v.Images) == 0 {
		return
	}
	end := &d.BackingStore
	for range v.Images[1:] {
		if *end == nil || (*end).Format == nil {
			return
		}
		end = &(*end).BackingStore
	}
	if last := v.Images[len(v.Images)-1]; *end == nil && last.Format != "raw" && (last.Binding != "" || last.Generation != "") {
		*end = &libvirtxml.DomainDiskBackingStore{}
	}
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

// parseVolume reads the volume of a device from its XML; the metadata add the rest.
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
	// libvirtxml gives an empty <backingStore/> a source, too; only one with a format is a real image.
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

// isDiscarded reports whether the top image is the overlay that libvirt puts on an ephemeral disk while its domain runs.
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
