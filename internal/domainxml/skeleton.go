package domainxml

import (
	"strings"

	"libvirt.org/go/libvirtxml"
)

// skeleton returns the part of a new domain that does not change afterwards.
func skeleton(m Machine) *libvirtxml.Domain {
	d := &libvirtxml.Domain{
		Type: m.DomainType,
		Name: m.Name,
		UUID: m.UUID,
		OS: &libvirtxml.DomainOS{
			Type: &libvirtxml.DomainOSType{Type: "hvm", Machine: m.Type, Arch: m.Arch},
		},
		// Without ACPI a guest ignores the power button, so it could not be shut down gracefully.
		Features: &libvirtxml.DomainFeatureList{
			ACPI: &libvirtxml.DomainFeature{},
			APIC: &libvirtxml.DomainFeatureAPIC{},
		},
		Clock:   &libvirtxml.DomainClock{Offset: "utc"},
		Devices: &libvirtxml.DomainDeviceList{},
	}
	if IsQ35(m.Type) {
		d.Devices.Controllers = []libvirtxml.DomainController{{Type: "pci", Index: new(uint), Model: "pcie-root"}}
		addPorts(d, m.hotplugPorts())
	}
	return d
}

// IsQ35 reports whether a machine type, alias or full name, is of the q35 family.
func IsQ35(machineType string) bool {
	return machineType == "q35" || strings.HasPrefix(machineType, "pc-q35-")
}

// SameMachineType reports whether two machine types are the same after libvirt has resolved aliases: it stores pc as
// pc-i440fx-<version>, q35 as pc-q35-<version>, and others, such as virt, with the version appended.
func SameMachineType(a, b string) bool {
	return a == b || resolves(a, b) || resolves(b, a)
}

func resolves(alias, full string) bool {
	switch alias {
	case "pc":
		return strings.HasPrefix(full, "pc-i440fx-")
	case "q35":
		return strings.HasPrefix(full, "pc-q35-")
	}
	return alias != "" && strings.HasPrefix(full, alias+"-")
}

func typeOf(d *libvirtxml.Domain) string {
	if d.OS.Type == nil {
		return ""
	}
	return d.OS.Type.Machine
}
