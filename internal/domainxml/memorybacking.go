package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// MemoryBacking is the host's memory that a guest has.
type MemoryBacking struct {
	// HugePages is true if it consists of huge pages, whose size is PageSize in KiB; 0 for the host's default.
	HugePages bool
	PageSize  uint
	// Shared is true if other processes of the host can map it, as virtiofsd does.
	Shared bool
}

// memoryBacking writes what differs. It comes after filesystems, which share the memory if one of them is on virtiofs.
var memoryBacking = part{
	name: "memory_backing", apply: applyMemoryBacking, parse: parseMemoryBacking,
	settings: []setting{{"memory_backing.shared", func(m Machine) bool { return m.MemoryBacking.Shared }}},
	same: func(live, want Machine) bool {
		for _, f := range want.Filesystems { // which share the memory
			want.MemoryBacking.Shared = want.MemoryBacking.Shared || f.Driver == VirtioFS && live.MemoryBacking.Shared
		}
		return live.MemoryBacking == want.MemoryBacking
	},
}

func applyMemoryBacking(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseMemoryBacking(d, metadataOf(d), &now) // never an error
	want := m.MemoryBacking
	if now.MemoryBacking == want {
		return
	}
	b := d.MemoryBacking
	if b == nil {
		b = &libvirtxml.DomainMemoryBacking{}
	}
	hasFolders := slices.ContainsFunc(d.Devices.Filesystems, isVirtioFS)
	if was := now.MemoryBacking; was.HugePages != want.HugePages || was.PageSize != want.PageSize {
		b.MemoryHugePages = want.hugePages()
	}
	if now.MemoryBacking.Shared && !want.Shared {
		b.MemoryAccess = nil
		if b.MemorySource != nil && b.MemorySource.Type == "memfd" {
			b.MemorySource = nil
		}
	}
	if want.Shared || hasFolders {
		b.MemoryAccess = &libvirtxml.DomainMemoryAccess{Mode: "shared"}
		if !want.HugePages && b.MemorySource == nil {
			b.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
		}
	}
	if d.MemoryBacking = b; *b == (libvirtxml.DomainMemoryBacking{}) {
		d.MemoryBacking = nil
	}
}

func (b MemoryBacking) hugePages() *libvirtxml.DomainMemoryHugepages {
	switch {
	case !b.HugePages:
		return nil
	case b.PageSize == 0:
		return &libvirtxml.DomainMemoryHugepages{}
	}
	return &libvirtxml.DomainMemoryHugepages{Hugepages: []libvirtxml.DomainMemoryHugepage{{Size: b.PageSize, Unit: "KiB"}}}
}

func parseMemoryBacking(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	b := d.MemoryBacking
	if b == nil {
		return nil
	}
	if h := b.MemoryHugePages; h != nil {
		m.MemoryBacking.HugePages = true
		if len(h.Hugepages) == 1 && h.Hugepages[0].Nodeset == "" {
			m.MemoryBacking.PageSize = h.Hugepages[0].Size
		}
	}
	asked := metadata.Phase != "" && metadata.wasConfigured("memory_backing.shared")
	m.MemoryBacking.Shared = b.MemoryAccess != nil && b.MemoryAccess.Mode == "shared" &&
		(asked || !slices.ContainsFunc(d.Devices.Filesystems, isVirtioFS))
	return nil
}
