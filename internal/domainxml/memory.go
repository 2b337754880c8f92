package domainxml

import (
	"fmt"

	"libvirt.org/go/libvirtxml"
)

var memory = part{
	name: "memory", apply: applyMemory, parse: parseMemory,
	same: func(live, want Machine) bool { return live.Memory == want.Memory },
}

// applyMemory sets the memory and what the balloon leaves of it to the same: libvirt would keep an old current value.
func applyMemory(d *libvirtxml.Domain, m Machine) {
	if now, err := memoryOf(d); err == nil && now == m.Memory {
		return
	}
	d.Memory = &libvirtxml.DomainMemory{Value: m.Memory, Unit: "KiB"}
	d.CurrentMemory = &libvirtxml.DomainCurrentMemory{Value: m.Memory, Unit: "KiB"}
}

func parseMemory(d *libvirtxml.Domain, _ machineMark, m *Machine) (err error) {
	m.Memory, err = memoryOf(d)
	return err
}

// memoryOf gives KiB. libvirt itself always writes KiB; other units only occur in XML that it has not seen.
func memoryOf(d *libvirtxml.Domain) (uint, error) {
	if d.Memory == nil {
		return 0, nil
	}
	if d.Memory.Unit != "KiB" && d.Memory.Unit != "" {
		return 0, fmt.Errorf("memory of domain %s is in %s, not in KiB as libvirt writes it", d.Name, d.Memory.Unit)
	}
	return d.Memory.Value, nil
}
