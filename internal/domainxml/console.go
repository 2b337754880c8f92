package domainxml

import (
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// Console is a virtio console, which a guest has beside its serial port, and whose output can be logged.
type Console struct {
	// LogFile is an absolute path on the host; empty disables the log.
	LogFile string
}

var console = part{
	name: "console", single: true, apply: applyConsole, parse: parseConsole,
	same: func(live, want Machine) bool { return reflect.DeepEqual(live.Console, want.Console) },
}

func isVirtioConsole(c libvirtxml.DomainConsole) bool {
	return c.Target != nil && c.Target.Type == "virtio"
}

func applyConsole(d *libvirtxml.Domain, m Machine) {
	n := slices.IndexFunc(d.Devices.Consoles, isVirtioConsole)
	switch {
	case m.Console == nil && (n < 0 || metadataOf(d).ignoresRemaining("console")):
		return
	case m.Console == nil:
		d.Devices.Consoles = slices.Delete(d.Devices.Consoles, n, n+1)
		return
	case n < 0:
		n = len(d.Devices.Consoles)
		d.Devices.Consoles = append(d.Devices.Consoles, libvirtxml.DomainConsole{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainConsoleTarget{Type: "virtio"},
		})
	}
	if c := &d.Devices.Consoles[n]; logFile(c.Log) != m.Console.LogFile {
		c.Log = newLog(m.Console.LogFile)
	}
}

func parseConsole(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if n := slices.IndexFunc(d.Devices.Consoles, isVirtioConsole); n >= 0 && !metadata.ignoresRemaining("console") {
		m.Console = &Console{LogFile: logFile(d.Devices.Consoles[n].Log)}
	}
	return nil
}
