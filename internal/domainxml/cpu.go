package domainxml

import "libvirt.org/go/libvirtxml"

var vcpus = part{
	name: "cpu", apply: applyVCPUs, parse: parseVCPUs,
	same: func(live, want Machine) bool { return live.VCPUs == want.VCPUs },
}

func applyVCPUs(d *libvirtxml.Domain, m Machine) {
	if vcpusOf(d) != m.VCPUs {
		d.VCPU = &libvirtxml.DomainVCPU{Value: m.VCPUs}
	}
}

func parseVCPUs(d *libvirtxml.Domain, _ machineMark, m *Machine) error {
	if m.VCPUs = vcpusOf(d); m.VCPUs == 0 {
		m.VCPUs = 1 // libvirt's default
	}
	return nil
}

func vcpusOf(d *libvirtxml.Domain) uint {
	switch {
	case d.VCPU == nil:
		return 0
	case d.VCPU.Current != 0:
		return d.VCPU.Current
	}
	return d.VCPU.Value
}
