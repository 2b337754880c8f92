package domainxml

import (
	"fmt"

	"libvirt.org/go/libvirtxml"
)

func applyCPU(d *libvirtxml.Domain, vcpus uint) {
	if parseCPU(d) != vcpus {
		d.VCPU = &libvirtxml.DomainVCPU{Value: vcpus}
	}
}

func parseCPU(d *libvirtxml.Domain) uint {
	switch {
	case d.VCPU == nil:
		return 0
	case d.VCPU.Current != 0:
		return d.VCPU.Current
	}
	return d.VCPU.Value
}

// applyMemory sets the memory and what the balloon leaves of it to the same: libvirt would keep an old current value.
func applyMemory(d *libvirtxml.Domain, kib uint) {
	if now, err := parseMemory(d); err == nil && now == kib {
		return
	}
	d.Memory = &libvirtxml.DomainMemory{Value: kib, Unit: "KiB"}
	d.CurrentMemory = &libvirtxml.DomainCurrentMemory{Value: kib, Unit: "KiB"}
}

// parseMemory gives KiB. libvirt itself always writes KiB; other units only occur in XML that it has not seen.
func parseMemory(d *libvirtxml.Domain) (uint, error) {
	if d.Memory == nil {
		return 0, nil
	}
	if d.Memory.Unit != "KiB" && d.Memory.Unit != "" {
		return 0, fmt.Errorf("memory of domain %s is in %s, not in KiB as libvirt writes it", d.Name, d.Memory.Unit)
	}
	return d.Memory.Value, nil
}
