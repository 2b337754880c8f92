package domainxml

import (
	"cmp"
	"fmt"

	"libvirt.org/go/libvirtxml"
)

// memory is the size that the balloon leaves of maxMemory. Without a configured maximum, memory is both.
var memory = part{
	name: "memory", apply: applyMemory, parse: parseMemory, drift: memoryDrift,
	same: sameMemory,
}

// sameMemory compares memory. A guest that uses its whole maximum is assumed to ignore its balloon: it may lack the driver, which a
// restart would not change.
func sameMemory(live, want Machine) bool {
	if want.MaxMemory == 0 {
		return near(live.Memory, want.Memory) && near(live.maxMemory(), want.Memory)
	}
	full := near(live.Memory, live.maxMemory()) && near(live.maxMemory(), want.MaxMemory)
	return near(live.Memory, want.Memory) || full && want.Memory <= live.Memory
}

var maxMemory = part{
	name: "max_memory", apply: applyMaxMemory, parse: parseMaxMemory,
	same: func(live, want Machine) bool { return want.MaxMemory == 0 || near(live.maxMemory(), want.MaxMemory) },
}

func (m Machine) maxMemory() uint { return cmp.Or(m.MaxMemory, m.Memory) }

// near reports whether two sizes are equal within the rounding of libvirt and QEMU, which is to whole MiB.
func near(a, b uint) bool { return max(a, b)-min(a, b) < 1024 }

func applyMemory(d *libvirtxml.Domain, m Machine) {
	if now, _, err := memoryOf(d); err == nil && now == m.Memory {
		return
	}
	d.CurrentMemory = &libvirtxml.DomainCurrentMemory{Value: m.Memory, Unit: "KiB"}
}

func applyMaxMemory(d *libvirtxml.Domain, m Machine) {
	if _, now, err := memoryOf(d); err == nil && now == m.maxMemory() {
		return
	}
	d.Memory = &libvirtxml.DomainMemory{Value: m.maxMemory(), Unit: "KiB"}
}

func parseMemory(d *libvirtxml.Domain, _ machineMetadata, m *Machine) (err error) {
	m.Memory, _, err = memoryOf(d)
	return err
}

func parseMaxMemory(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	now, most, err := memoryOf(d)
	if most != now {
		m.MaxMemory = most
	}
	return err
}

// memoryOf returns KiB. libvirt itself always writes KiB; other units only occur in XML that it has not processed.
func memoryOf(d *libvirtxml.Domain) (now, most uint, err error) {
	if d.Memory == nil {
		return 0, 0, nil
	}
	now, most = d.Memory.Value, d.Memory.Value
	units := []string{d.Memory.Unit}
	if d.CurrentMemory != nil {
		now, units = d.CurrentMemory.Value, append(units, d.CurrentMemory.Unit)
	}
	for _, unit := range units {
		if unit != "KiB" && unit != "" {
			return 0, 0, fmt.Errorf("memory of domain %s is in %s, not in KiB as libvirt writes it", d.Name, unit)
		}
	}
	return now, most, nil
}

// memoryDrift records the balloon's size as drift. But a guest that still has all its memory may lack the driver, or not have booted
// yet.
func memoryDrift(stored *Machine, live Machine) {
	waits := stored.Memory > live.maxMemory() || live.Memory >= live.maxMemory() && stored.Memory < live.maxMemory()
	if !waits && !near(live.Memory, stored.Memory) {
		stored.Drift.Memory = live.Memory
	}
}
