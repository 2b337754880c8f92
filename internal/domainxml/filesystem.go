package domainxml

import (
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The drivers that share a folder of the host with a guest.
const (
	VirtioFS = "virtiofs"
	NineP    = "9p"
)

// Filesystem is a folder of the host that a guest can mount.
type Filesystem struct {
	// Source is an absolute path on the host, Target the tag that the guest mounts.
	Source, Target string
	// Driver is VirtioFS or NineP.
	Driver   string
	ReadOnly bool
	// Volume is the binding's whose folder the Source is; without images for any other folder.
	Volume volume.Volume
	// Tentative marks a folder in the stored definition that the guard has not admitted yet.
	Tentative bool
}

var filesystems = part{
	name: "filesystems", apply: applyFilesystems, parse: parseFilesystems,
	same: func(live, want Machine) bool {
		return maps.EqualFunc(live.Filesystems, want.Filesystems, Filesystem.isAs)
	},
}

// isAs reports whether a filesystem is shared as another one, under the same access mode. Only a restart changes that.
func (f Filesystem) isAs(want Filesystem) bool {
	return f.sameDevice(want) && f.image().AccessMode == want.image().AccessMode
}

func (f Filesystem) sameDevice(want Filesystem) bool {
	return f.Source == want.Source && f.Target == want.Target && f.Driver == want.Driver && f.ReadOnly == want.ReadOnly
}

// image is the folder as storage. What is bound to nothing is for anyone that shares it.
func (f Filesystem) image() volume.Image {
	switch {
	case len(f.Volume.Images) > 0:
		return f.Volume.Images[0]
	case f.ReadOnly:
		return volume.Image{Type: "dir", Format: "dir", Name: f.Source, AccessMode: volume.ReadShared}
	}
	return volume.Image{Type: "dir", Format: "dir", Name: f.Source, AccessMode: volume.WriteShared}
}

// ChangedFolders returns the keys, sorted, of the filesystems of want that have a bound folder which was does not have, or has under
// another access mode.
func ChangedFolders(was, want Machine) (keys []string) {
	for _, key := range want.BoundFolders() {
		before, is := was.Filesystems[key], want.Filesystems[key].image()
		if len(before.Volume.Images) == 0 || !sameImage(before.image(), is) || before.image().AccessMode != is.AccessMode {
			keys = append(keys, key)
		}
	}
	return keys
}

// BoundFolders returns the keys, sorted, of the filesystems that have the folder of a binding.
func (m Machine) BoundFolders() (keys []string) {
	for key, f := range m.Filesystems {
		if len(f.Volume.Images) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// RevertFolders is m with the filesystems of those keys as in was. A former folder of a binding is not restored, because another machine
// may have it by now.
func (m Machine) RevertFolders(was Machine, keys []string) Machine {
	m.Filesystems = maps.Clone(m.Filesystems)
	for _, key := range keys {
		before, had := was.Filesystems[key]
		if had && (len(before.Volume.Images) == 0 || sameImage(before.image(), m.Filesystems[key].image())) {
			m.Filesystems[key] = before
		} else {
			delete(m.Filesystems, key)
		}
	}
	return m
}

// fsAlias is the prefix of the user alias that contains a filesystem's key.
const fsAlias = "ua-fs-"

// filesystemKey returns the key of a filesystem: that of its alias if virtclaim has assigned one, else its tag.
func filesystemKey(f libvirtxml.DomainFilesystem) string {
	switch {
	case f.Alias != nil && strings.HasPrefix(f.Alias.Name, fsAlias):
		return strings.TrimPrefix(f.Alias.Name, fsAlias)
	case f.Target != nil:
		return f.Target.Dir
	}
	return ""
}

// isFolder reports whether a filesystem is a folder of the host, and not an image or one of the kinds that containers have.
func isFolder(f libvirtxml.DomainFilesystem) bool {
	return f.Source != nil && f.Source.Mount != nil && f.Source.Mount.Dir != ""
}

// applyFilesystems keeps filesystems that are unchanged, with their bus address, and recreates all others.
func applyFilesystems(d *libvirtxml.Domain, m Machine) {
	var kept []libvirtxml.DomainFilesystem
	have := map[string]bool{}
	for _, f := range d.Devices.Filesystems {
		key := filesystemKey(f)
		want, wanted := m.Filesystems[key]
		if same := wanted && parseFilesystem(f, diskMetadata{}).sameDevice(want); same || !isFolder(f) {
			kept = append(kept, f)
			have[key] = same
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Filesystems)) {
		if !have[key] {
			kept = append(kept, newFilesystem(key, m.Filesystems[key]))
		}
	}
	had := slices.ContainsFunc(d.Devices.Filesystems, isVirtioFS)
	d.Devices.Filesystems = kept
	shareMemory(d, had)
}

func newFilesystem(key string, f Filesystem) libvirtxml.DomainFilesystem {
	fs := libvirtxml.DomainFilesystem{
		AccessMode: "passthrough", // libvirt's default, and the only mode that virtiofs supports
		Source:     &libvirtxml.DomainFilesystemSource{Mount: &libvirtxml.DomainFilesystemSourceMount{Dir: f.Source}},
		Target:     &libvirtxml.DomainFilesystemTarget{Dir: f.Target},
		Alias:      &libvirtxml.DomainAlias{Name: fsAlias + key},
	}
	if f.Driver == VirtioFS {
		fs.Driver = &libvirtxml.DomainFilesystemDriver{Type: VirtioFS}
	}
	if f.ReadOnly {
		fs.ReadOnly = &libvirtxml.DomainFilesystemReadOnly{}
	}
	return fs
}

func isVirtioFS(f libvirtxml.DomainFilesystem) bool {
	return f.Driver != nil && f.Driver.Type == VirtioFS
}

// shareMemory configures shared memory, through which virtiofsd accesses the guest. A domain whose last virtiofs filesystem was
// removed gets private memory again.
func shareMemory(d *libvirtxml.Domain, had bool) {
	b := d.MemoryBacking
	switch has := slices.ContainsFunc(d.Devices.Filesystems, isVirtioFS); {
	case has:
		if b == nil {
			b = &libvirtxml.DomainMemoryBacking{}
			d.MemoryBacking = b
		}
		if b.MemorySource == nil && b.MemoryHugePages == nil {
			b.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
		}
		b.MemoryAccess = &libvirtxml.DomainMemoryAccess{Mode: "shared"}
	case had && b != nil && b.MemorySource != nil && b.MemorySource.Type == "memfd":
		b.MemorySource, b.MemoryAccess = nil, nil
		if *b == (libvirtxml.DomainMemoryBacking{}) {
			d.MemoryBacking = nil
		}
	}
}

func parseFilesystem(f libvirtxml.DomainFilesystem, metadata diskMetadata) Filesystem {
	is := Filesystem{Driver: NineP, ReadOnly: f.ReadOnly != nil}
	if isFolder(f) {
		is.Source = f.Source.Mount.Dir
	}
	if f.Target != nil {
		is.Target = f.Target.Dir
	}
	if isVirtioFS(f) {
		is.Driver = VirtioFS
	}
	// The record of another folder, or of one that was only read and is written to by now, was overridden outside of Terraform.
	if len(metadata.Images) == 1 && metadata.Images[0].Name == is.Source &&
		(is.ReadOnly || metadata.Images[0].AccessMode != volume.ReadShared) {
		is.Volume = volume.Volume{Capacity: metadata.Capacity, Images: []volume.Image{is.image()}}
		metadata.completeImages(is.Volume.Images)
		is.Tentative = metadata.Tentative
	}
	return is
}

func parseFilesystems(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	for _, f := range d.Devices.Filesystems {
		if isFolder(f) {
			if m.Filesystems == nil {
				m.Filesystems = map[string]Filesystem{}
			}
			key := filesystemKey(f)
			m.Filesystems[key] = parseFilesystem(f, recordOf(metadata.Filesystems, key))
		}
	}
	return nil
}

// folders lists the folders of the host that a domain shares.
func (d *Domain) folders() (all []Attached) {
	for _, f := range d.xml.Devices.Filesystems {
		if !isFolder(f) {
			continue
		}
		key := filesystemKey(f)
		is := parseFilesystem(f, recordOf(d.metadata.Filesystems, key))
		v := volume.Volume{Capacity: is.Volume.Capacity, Images: []volume.Image{is.image()}}
		all = append(all, Attached{Key: key, Target: is.Target, ReadOnly: is.ReadOnly, Volume: v})
	}
	return all
}

// FilesystemDevice returns the <filesystem> element with that key; ok is false when the domain has none.
func (d *Domain) FilesystemDevice(key string) (element string, ok bool, err error) {
	n := slices.IndexFunc(d.xml.Devices.Filesystems, func(f libvirtxml.DomainFilesystem) bool { return filesystemKey(f) == key })
	if n < 0 {
		return "", false, nil
	}
	element, err = d.xml.Devices.Filesystems[n].Marshal()
	return element, err == nil, err
}
