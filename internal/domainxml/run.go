package domainxml

import (
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// run is in QEMU's fw_cfg device, which the init reads.
var run = part{
	name: "run", apply: applyRun, parse: parseRun,
	same: func(live, want Machine) bool { return live.Run == want.Run },
}

// applyRun leaves the other entries of the device.
func applyRun(d *libvirtxml.Domain, m Machine) {
	if m.Run == runOf(d) {
		return
	}
	var entries []libvirtxml.DomainSysInfoEntry
	if m.Run != "" {
		entries = []libvirtxml.DomainSysInfoEntry{{Name: guestinit.ConfigEntry, Value: m.Run}}
	}
	setEntries(d, isRun, entries)
}

func isRun(e libvirtxml.DomainSysInfoEntry) bool { return e.Name == guestinit.ConfigEntry }

func runOf(d *libvirtxml.Domain) string {
	if entries := entriesOf(d, isRun); len(entries) > 0 {
		return entries[0].Value
	}
	return ""
}

func parseRun(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	m.Run = runOf(d)
	return nil
}

// isRunRoot reports whether the nth disk has the root file system of what is run.
func isRunRoot(d *libvirtxml.Domain, n int) bool {
	config, err := guestinit.Decode([]byte(runOf(d)))
	return err != nil || d.Devices.Disks[n].Serial == config.Root // of what can't be read, any disk may be it
}

// IsDone reports whether the machine is off because its program has ended by itself, with any exit code.
func (m Machine) IsDone() bool { return m.ExitCode != nil && m.HasEnded }
