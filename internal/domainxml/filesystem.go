package domainxml

import (
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
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
}

var filesystems = part{
	name: "filesystems", apply: applyFilesystems, parse: parseFilesystems,
	same: func(live, want Machine) bool { return maps.Equal(live.Filesystems, want.Filesystems) },
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
		if same := wanted && parseFilesystem(f) == want; same || !isFolder(f) {
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

func parseFilesystem(f libvirtxml.DomainFilesystem) Filesystem {
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
	return is
}

func parseFilesystems(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	for _, f := range d.Devices.Filesystems {
		if isFolder(f) {
			if m.Filesystems == nil {
				m.Filesystems = map[string]Filesystem{}
			}
			m.Filesystems[filesystemKey(f)] = parseFilesystem(f)
		}
	}
	return nil
}
