package domainxml

import (
	"reflect"

	"libvirt.org/go/libvirtxml"
)

var hyperV = part{
	name: "features", apply: applyHyperV, parse: parseHyperV,
	settings: []setting{{"hyperv", func(m Machine) bool { return m.HyperV }}},
	same:     func(live, want Machine) bool { return live.HyperV == want.HyperV },
}

// enlightenments are those that QEMU recommends for Windows on all processors (its page "Hyper-V Enlightenments"); it has the numbers of
// spinlock retries from there, too.
func enlightenments() *libvirtxml.DomainFeatureHyperV {
	on := libvirtxml.DomainFeatureState{State: "on"}
	return &libvirtxml.DomainFeatureHyperV{
		Mode: "custom", Relaxed: &on, VAPIC: &on, VPIndex: &on, Runtime: &on, Synic: &on, Reset: &on, Frequencies: &on, IPI: &on,
		Spinlocks: &libvirtxml.DomainFeatureHyperVSpinlocks{DomainFeatureState: on, Retries: 8191},
		STimer:    &libvirtxml.DomainFeatureHyperVSTimer{DomainFeatureState: on, Direct: &on},
		TLBFlush:  &libvirtxml.DomainFeatureHyperVTLBFlush{DomainFeatureState: on},
	}
}

// hasHyperV reports whether a domain has just these.
func hasHyperV(d *libvirtxml.Domain) bool {
	return d.Features != nil && reflect.DeepEqual(d.Features.HyperV, enlightenments())
}

// SetsHyperV reports whether a text of domain_xml has enlightenments.
func SetsHyperV(text string) bool {
	d, err := parseElements(text)
	return err == nil && d.Features != nil && d.Features.HyperV != nil
}

func applyHyperV(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseHyperV(d, metadataOf(d), &now) // never an error
	if now.HyperV == m.HyperV {
		return
	}
	if d.Features == nil {
		d.Features = &libvirtxml.DomainFeatureList{}
	}
	d.Features.HyperV = nil
	if m.HyperV {
		d.Features.HyperV = enlightenments()
	}
}

func parseHyperV(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	m.HyperV = metadata.wasConfigured("hyperv") && hasHyperV(d)
	return nil
}
