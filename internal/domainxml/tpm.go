package domainxml

import (
	"cmp"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// TPM is a trusted platform module, emulated by swtpm on the host.
type TPM struct {
	// Model is the device that the guest sees; empty lets libvirt choose.
	Model string
	// Version is 1.2 or 2.0.
	Version string
}

var tpm = part{
	name: "tpm", single: true, apply: applyTPM, parse: parseTPM,
	settings: []setting{{"tpm.model", func(m Machine) bool { return m.TPM != nil && m.TPM.Model != "" }}},
	same: func(live, want Machine) bool {
		if live.TPM == nil || want.TPM == nil {
			return live.TPM == want.TPM
		}
		return live.TPM.Version == want.TPM.Version && (want.TPM.Model == "" || want.TPM.Model == live.TPM.Model)
	},
}

// applyTPM ignores a TPM of the host that is passed through.
func applyTPM(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseTPM(d, metadataOf(d), &now)
	is := emulatorOf(d)
	switch {
	case m.TPM == nil:
		d.Devices.TPMs = slices.DeleteFunc(d.Devices.TPMs, isEmulator)
	case now.TPM == nil || now.TPM.Version != m.TPM.Version:
		d.Devices.TPMs = append(slices.DeleteFunc(d.Devices.TPMs, isEmulator), newTPM(*m.TPM))
	case now.TPM.Model != m.TPM.Model:
		is.Model, is.Address = m.TPM.Model, nil
	}
}

func newTPM(t TPM) libvirtxml.DomainTPM {
	return libvirtxml.DomainTPM{Model: t.Model, Backend: &libvirtxml.DomainTPMBackend{
		Emulator: &libvirtxml.DomainTPMBackendEmulator{Version: t.Version},
	}}
}

func isEmulator(t libvirtxml.DomainTPM) bool { return t.Backend != nil && t.Backend.Emulator != nil }

// emulatorOf returns the domain's emulated TPM; nil when it has none.
func emulatorOf(d *libvirtxml.Domain) *libvirtxml.DomainTPM {
	if n := slices.IndexFunc(d.Devices.TPMs, isEmulator); n >= 0 {
		return &d.Devices.TPMs[n]
	}
	return nil
}

func parseTPM(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	is := emulatorOf(d)
	if is == nil {
		return nil
	}
	m.TPM = &TPM{Version: cmp.Or(is.Backend.Emulator.Version, "2.0")}
	if metadata.wasConfigured("tpm.model") {
		m.TPM.Model = is.Model
	}
	return nil
}
