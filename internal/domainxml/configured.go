package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// configured are the settings that the machine configures.
func (m Machine) configured() (names []string) {
	for _, p := range parts {
		for _, s := range p.settings {
			if s.is(m) {
				names = append(names, s.name)
			}
		}
	}
	return names
}

// allSettings are the names of all settings.
func allSettings() (names []string) {
	for _, p := range parts {
		for _, s := range p.settings {
			names = append(names, s.name)
		}
	}
	return names
}

// isUnmanaged reports whether a domain has no metadata of virtclaim's. Any of its devices may then be libvirt's default.
func (m Machine) isUnmanaged() bool { return m.Metadata.Phase == "" }

// wasConfigured reports whether an attribute was configured. In an unmanaged domain, all that exists counts as configured.
func (m machineMetadata) wasConfigured(name string) bool {
	return m.Phase == "" || slices.Contains(m.Configured, name)
}

// metadataOf returns the metadata of a domain before it is written again. Unreadable metadata is reported by the write.
func metadataOf(d *libvirtxml.Domain) machineMetadata {
	metadata, _ := parseMetadata(d)
	return metadata
}

// The kinds of state that libvirt keeps beside a domain's disks. libvirt removes it only together with a domain that has the device.
const (
	keptNVRAM = "nvram"
	keptTPM   = "tpm"
)

// keptState are the kinds of state that libvirt may keep for a domain, also for devices that it had earlier.
func keptState(d *libvirtxml.Domain) []string {
	all := metadataOf(d).KeptState
	if isUEFI(d) {
		all = append(all, keptNVRAM)
	}
	if emulatorOf(d) != nil {
		all = append(all, keptTPM)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ForUndefine returns the XML for a domain that is about to be undefined, with all devices whose state has to be removed with it. It is
// empty when the domain has them already.
func (d *Domain) ForUndefine() (string, error) {
	x, err := Unmarshal(d.text) // it is changed
	if err != nil {
		return "", err
	}
	lacks := false
	if slices.Contains(d.metadata.KeptState, keptNVRAM) && !isUEFI(x) {
		lacks = true
		setUEFI(x, Firmware{})
	}
	if slices.Contains(d.metadata.KeptState, keptTPM) && emulatorOf(x) == nil {
		lacks = true
		x.Devices.TPMs = []libvirtxml.DomainTPM{newTPM(TPM{})}
	}
	if !lacks {
		return "", nil
	}
	return x.Marshal()
}
