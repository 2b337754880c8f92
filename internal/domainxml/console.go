package domainxml

import (
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// Console is a virtio console, which a guest has beside its serial port, and whose output may be kept.
type Console struct {
	// LogFile is an absolute path on the host; empty keeps no log.
	LogFile string
}

var console = part{
	name: "console", apply: applyConsole, parse: parseConsole,
	same: func(live, want Machine) bool { return reflect.DeepEqual(live.Console, want.Console) },
}

func isVirtioConsole(c libvirtxml.DomainConsole) bool {
	return c.Target != nil && c.Target.Type == "virtio"
}

func applyConsole(d *libvirtxml.Domain, m Machine) {
	switch {
	case m.Console == nil:
		d.Devices.Consoles = slices.DeleteFunc(d.Devices.Consoles, isVirtioConsole)
		return
	case virtioConsole(d) == nil:
		d.Devices.Consoles = append(d.Devices.Consoles, libvirtxml.DomainConsole{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
			Target: &libvirtxml.DomainConsoleTarget{Type: "virtio"},
		})
	}
	if c := virtioConsole(d); logFile(c.Log) != m.Console.LogFile {
		c.Log = newLog(m.Console.LogFile)
	}
}

func parseConsole(d *libvirtxml.Domain, _ machineMark, m *Machine) error {
	if c := virtioConsole(d); c != nil {
		m.Console = &Console{LogFile: logFile(c.Log)}
	}
	return nil
}

// virtioConsole is the first one; nil when there is none.
func virtioConsole(d *libvirtxml.Domain) *libvirtxml.DomainConsole {
	if n := slices.IndexFunc(d.Devices.Consoles, isVirtioConsole); n >= 0 {
		return &d.Devices.Consoles[n]
	}
	return nil
}
