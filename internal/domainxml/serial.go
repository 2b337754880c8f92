package domainxml

import (
	"reflect"

	"libvirt.org/go/libvirtxml"
)

var serialPort = part{
	name: "serial", single: true, apply: applySerial, parse: parseSerial,
	same: func(live, want Machine) bool { return reflect.DeepEqual(live.Serial, want.Serial) },
}

// applySerial adds the first serial port to the domain, or removes it. libvirt makes the first <console> a copy of the first <serial>,
// so the console is removed with it.
func applySerial(d *libvirtxml.Domain, m Machine) {
	if m.Serial == nil {
		if len(d.Devices.Serials) == 0 || metadataOf(d).ignoresRemaining("serial") {
			return
		}
		d.Devices.Serials = d.Devices.Serials[1:]
		d.Devices.Consoles = withoutSerialTwin(d.Devices.Consoles)
		return
	}
	if len(d.Devices.Serials) == 0 {
		d.Devices.Serials = []libvirtxml.DomainSerial{{
			Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
		}}
	}
	port := &d.Devices.Serials[0]
	if logFile(port.Log) == m.Serial.LogFile {
		return
	}
	port.Log = newLog(m.Serial.LogFile)
	d.Devices.Consoles = withoutSerialTwin(d.Devices.Consoles)
}

// withoutSerialTwin removes the copy of the serial port, which libvirt generates again.
func withoutSerialTwin(consoles []libvirtxml.DomainConsole) []libvirtxml.DomainConsole {
	var kept []libvirtxml.DomainConsole
	for _, c := range consoles {
		if c.Target != nil && c.Target.Type != "serial" && c.Target.Type != "" {
			kept = append(kept, c)
		}
	}
	return kept
}

func parseSerial(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if len(d.Devices.Serials) > 0 && !metadata.ignoresRemaining("serial") {
		m.Serial = &Serial{LogFile: logFile(d.Devices.Serials[0].Log)}
	}
	return nil
}

// newLog returns a log that is appended to, so that the output of earlier boots is kept.
func newLog(file string) *libvirtxml.DomainChardevLog {
	if file == "" {
		return nil
	}
	return &libvirtxml.DomainChardevLog{File: file, Append: "on"}
}

func logFile(l *libvirtxml.DomainChardevLog) string {
	if l == nil {
		return ""
	}
	return l.File
}
