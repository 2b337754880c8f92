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

// Firmware is what starts a machine. libvirt chooses the file.
type Firmware struct {
	// Type is BIOS or UEFI.
	Type string
	// SecureBoot enforces signatures, with the usual keys enrolled. Only UEFI has it.
	SecureBoot bool
}

var firmware = part{
	name: "firmware", apply: applyFirmware, parse: parseFirmware,
	same: func(live, want Machine) bool { return live.uefi() == want.uefi() },
}

// uefi is the firmware of a machine that has UEFI; BIOS, asked for or not, is none.
func (m Machine) uefi() Firmware {
	if m.Firmware == nil || m.Firmware.Type != UEFI {
		return Firmware{}
	}
	return *m.Firmware
}

// applyFirmware leaves what is there as long as it is the kind that is wanted: it names the file that the firmware keeps
// its variables in.
func applyFirmware(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseFirmware(d, markOf(d), &now)
	switch want := m.uefi(); {
	case now.uefi() == want:
	case want.Type == "":
		d.OS.Firmware, d.OS.FirmwareInfo, d.OS.Loader, d.OS.NVRam = "", nil, nil, nil
	default:
		setUEFI(d, want)
	}
}

// setUEFI says no to both features for plain UEFI: without that libvirt prefers secure boot. The file with the variables
// stays the same, wherever it is.
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

// isUEFI also knows the older way, a file that somebody has chosen.
func isUEFI(d *libvirtxml.Domain) bool {
	return d.OS.Firmware == UEFI || d.OS.Firmware == "" && d.OS.Loader != nil && d.OS.Loader.Type == "pflash"
}

func parseFirmware(d *libvirtxml.Domain, mark machineMark, m *Machine) error {
	switch {
	case isUEFI(d):
		m.Firmware = &Firmware{Type: UEFI, SecureBoot: isSecure(d)}
	case mark.Phase != "" && mark.asks("firmware"):
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
