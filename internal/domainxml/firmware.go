package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// The kinds of firmware.
const (
	BIOS = "bios"
	UEFI = "efi"
)

// Firmware is the firmware of a machine. libvirt chooses the file.
type Firmware struct {
	// Type is BIOS or UEFI.
	Type string
	// SecureBoot enforces signatures, with the default keys enrolled. It requires UEFI.
	SecureBoot bool
}

var firmware = part{
	name: "firmware", apply: applyFirmware, parse: parseFirmware,
	settings: []setting{{"firmware", func(m Machine) bool { return m.Firmware != nil }}},
	same:     func(live, want Machine) bool { return live.uefi() == want.uefi() },
}

// uefi returns the firmware of a machine that has UEFI; for BIOS, configured or by default, it is empty.
func (m Machine) uefi() Firmware {
	if m.Firmware == nil || m.Firmware.Type != UEFI {
		return Firmware{}
	}
	return *m.Firmware
}

// applyFirmware keeps an existing firmware of the same kind, because its definition contains the path of the file with the UEFI
// variables.
func applyFirmware(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseFirmware(d, metadataOf(d), &now)
	switch want := m.uefi(); {
	case now.uefi() == want:
	case want.Type == "":
		d.OS.Firmware, d.OS.FirmwareInfo, d.OS.Loader, d.OS.NVRam = "", nil, nil, nil
	default:
		setUEFI(d, want)
	}
}

// setUEFI disables both features explicitly for plain UEFI, because libvirt prefers secure boot otherwise. The path of the file with
// the variables is kept.
func setUEFI(d *libvirtxml.Domain, want Firmware) {
	enabled := "no"
	if want.SecureBoot {
		enabled = "yes"
	}
	d.OS.Firmware, d.OS.Loader = UEFI, nil
	d.OS.FirmwareInfo = &libvirtxml.DomainOSFirmwareInfo{Features: []libvirtxml.DomainOSFirmwareFeature{
		{Enabled: enabled, Name: "enrolled-keys"}, {Enabled: enabled, Name: secureBoot},
	}}
	if d.OS.NVRam != nil {
		d.OS.NVRam.Template, d.OS.NVRam.TemplateFormat = "", ""
	}
}

// secureBoot is libvirt's name of the feature.
const secureBoot = "secure-boot"

// isUEFI also recognizes the older form, an explicitly configured firmware file.
func isUEFI(d *libvirtxml.Domain) bool {
	return d.OS.Firmware == UEFI || d.OS.Firmware == "" && d.OS.Loader != nil && d.OS.Loader.Type == "pflash"
}

func parseFirmware(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	switch {
	case isUEFI(d):
		m.Firmware = &Firmware{Type: UEFI, SecureBoot: isSecure(d)}
	case metadata.Phase != "" && metadata.wasConfigured("firmware"):
		m.Firmware = &Firmware{Type: BIOS}
	}
	return nil
}

func isSecure(d *libvirtxml.Domain) bool {
	if d.OS.Firmware == "" {
		return d.OS.Loader.Secure == "yes"
	}
	return d.OS.FirmwareInfo != nil && slices.ContainsFunc(d.OS.FirmwareInfo.Features, func(f libvirtxml.DomainOSFirmwareFeature) bool {
		return f.Name == secureBoot && f.Enabled == "yes"
	})
}
