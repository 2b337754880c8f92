package domainxml

import (
	"net"
	"slices"
	"strconv"

	"libvirt.org/go/libvirtxml"
)

// Endpoints are the addresses of a running machine's serial port, console and display; empty where it has none.
type Endpoints struct {
	// Serial and Console are terminals of the host, such as /dev/pts/3.
	Serial, Console string
	// Graphics is the URI of the display, such as vnc://127.0.0.1:5900. RFC 7869 puts the port there, not the display number.
	Graphics string
}

// endpointsOf reads the endpoints from a running domain's XML: stored definitions don't contain them.
func endpointsOf(d *libvirtxml.Domain) (e Endpoints) {
	if len(d.Devices.Serials) > 0 {
		e.Serial = terminal(d.Devices.Serials[0].Source)
	}
	if n := slices.IndexFunc(d.Devices.Consoles, isVirtioConsole); n >= 0 {
		e.Console = terminal(d.Devices.Consoles[n].Source)
	}
	if is, _, ok := displayOf(d); ok && *is.port > 0 && is.address() != "" {
		e.Graphics = is.kind + "://" + net.JoinHostPort(is.address(), strconv.Itoa(*is.port))
	}
	return e
}

func terminal(s *libvirtxml.DomainChardevSource) string {
	if s == nil || s.Pty == nil {
		return ""
	}
	return s.Pty.Path
}
