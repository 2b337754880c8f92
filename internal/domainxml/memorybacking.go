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

// memoryBacking comes after filesystems, which share the memory if one of them is on virtiofs.
var memoryBacking = part{
	name: "memory_backing", apply: applyMemoryBacking, parse: parseMemoryBacking,
	settings: []setting{{"memory_backing.shared", func(m Machine) bool { return m.MemoryBacking.Shared }}},
	same:     func(live, want Machine) bool { return live.MemoryBacking == want.MemoryBacking },
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
	b.MemoryHugePages, b.MemoryAccess, b.MemorySource = nil, nil, nil
	if want.HugePages {
		b.MemoryHugePages = &libvirtxml.DomainMemoryHugepages{}
		if want.PageSize != 0 {
			b.MemoryHugePages.Hugepages = []libvirtxml.DomainMemoryHugepage{{Size: want.PageSize, Unit: "KiB"}}
		}
	}
	if want.Shared || hasFolders {
		b.MemoryAccess = &libvirtxml.DomainMemoryAccess{Mode: "shared"}
		if !want.HugePages {
			b.MemorySource = &libvirtxml.DomainMemorySource{Type: "memfd"}
		}
	}
	if d.MemoryBacking = b; *b == (libvirtxml.DomainMemoryBacking{}) {
		d.MemoryBacking = nil
	}
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
