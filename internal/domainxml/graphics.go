package domainxml

import (
	"cmp"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// The kinds of display.
const (
	VNC   = "vnc"
	Spice = "spice"
)

// Graphics is a display that is reached over the network.
type Graphics struct {
	// Type is VNC or Spice.
	Type string
	// Listen is the address on which the display listens; empty if none is configured.
	Listen string
	// Port is 0 where libvirt chooses a port at each start.
	Port int
	// Password is the password of the display. It is write-only.
	Password string
	// PasswordVersion is the version of the password, whose change sets it again; nil if virtclaim has set none.
	PasswordVersion *int64
	// Protected is true if the domain's display requires a password, whether or not virtclaim has set it. It is read-only.
	Protected bool
}

var graphics = part{
	name: "graphics", single: true, apply: applyGraphics, parse: parseGraphics,
	same: func(live, want Machine) bool { return live.Graphics.serves(want.Graphics) },
}

// serves reports whether a running display matches want. The value of the password is ignored, because it is changed live; but a
// password can be neither added to nor removed from a running display.
func (is *Graphics) serves(want *Graphics) bool {
	if is == nil || want == nil {
		return is == want
	}
	protected := is.PasswordVersion == nil
	if want.PasswordVersion != nil {
		protected = is.Protected
	}
	return is.Type == want.Type && is.Listen == want.Listen && is.Port == want.Port && protected
}

// display is the common part of both kinds of display.
type display struct {
	kind                 string
	port                 *int
	auto, listen, passwd *string
	listeners            *[]libvirtxml.DomainGraphicListener
}

// displayOf returns the first display that is reached over the network, and its index; ok is false when there is none.
func displayOf(d *libvirtxml.Domain) (is display, n int, ok bool) {
	for n, g := range d.Devices.Graphics {
		switch {
		case g.VNC != nil:
			return display{VNC, &g.VNC.Port, &g.VNC.AutoPort, &g.VNC.Listen, &g.VNC.Passwd, &g.VNC.Listeners}, n, true
		case g.Spice != nil:
			return display{Spice, &g.Spice.Port, &g.Spice.AutoPort, &g.Spice.Listen, &g.Spice.Passwd, &g.Spice.Listeners}, n, true
		}
	}
	return display{}, 0, false
}

// applyGraphics keeps an unchanged password, which is only in the stored definition.
func applyGraphics(d *libvirtxml.Domain, m Machine) {
	want := m.Graphics
	is, n, ok := displayOf(d)
	if want == nil && (!ok || metadataOf(d).ignoresRemaining("graphics")) {
		return
	}
	if ok && (want == nil || want.Type != is.kind) {
		d.Devices.Graphics = slices.Delete(d.Devices.Graphics, n, n+1)
		is, _, ok = displayOf(d)
	}
	if want == nil {
		return
	}
	ok = ok && want.Type == is.kind
	if !ok {
		g := libvirtxml.DomainGraphic{VNC: &libvirtxml.DomainGraphicVNC{Port: -1, AutoPort: "yes"}}
		if want.Type == Spice {
			g = libvirtxml.DomainGraphic{Spice: &libvirtxml.DomainGraphicSpice{Port: -1, AutoPort: "yes"}}
		}
		d.Devices.Graphics = slices.Insert(d.Devices.Graphics, 0, g)
		is, _, _ = displayOf(d)
	}
	if !ok || cmp.Or(is.address(), Localhost) != want.Listen {
		*is.listen = ""
		*is.listeners = []libvirtxml.DomainGraphicListener{{Address: &libvirtxml.DomainGraphicListenerAddress{Address: want.Listen}}}
	}
	if is.fixedPort() != want.Port {
		*is.port, *is.auto = -1, "yes"
		if want.Port != 0 {
			*is.port, *is.auto = want.Port, "no"
		}
	}
	is.protect(*want, metadataOf(d).Password)
}

// protect sets or removes the password; has is the version of the domain's password.
func (is display) protect(want Graphics, has *int64) {
	switch {
	case want.PasswordVersion == nil && has != nil:
		*is.passwd = ""
	case want.PasswordVersion != nil && (*is.passwd == "" || !reflect.DeepEqual(has, want.PasswordVersion)):
		*is.passwd = want.Password
	}
}

// Localhost is where a display listens by default, also one whose definition names no address.
const Localhost = "127.0.0.1"

func (is display) address() string {
	if l := *is.listeners; len(l) > 0 && l[0].Address != nil {
		return l[0].Address.Address
	}
	return *is.listen
}

func (is display) fixedPort() int {
	if *is.auto == "yes" || *is.port < 0 {
		return 0
	}
	return *is.port
}

func parseGraphics(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if is, _, ok := displayOf(d); ok && !metadata.ignoresRemaining("graphics") {
		m.Graphics = &Graphics{Type: is.kind, Listen: cmp.Or(is.address(), Localhost), Port: is.fixedPort(), Protected: *is.passwd != ""}
		if m.Graphics.Protected {
			m.Graphics.PasswordVersion = metadata.Password
		}
	}
	return nil
}

// Unlocks returns the element of a running domain's display with the new password of want; empty when the password is unchanged, or
// when that display requires none. The XML of both must contain their secrets.
func (d *Domain) Unlocks(stored *Domain, want Machine) (string, error) {
	was, err := stored.Machine()
	if err != nil {
		return "", err
	}
	x, err := Unmarshal(d.text) // it is changed
	if err != nil {
		return "", err
	}
	is, n, ok := displayOf(x)
	if !ok || *is.passwd == "" || want.Graphics == nil || want.Graphics.Type != is.kind || want.Graphics.PasswordVersion == nil ||
		was.Graphics != nil && reflect.DeepEqual(was.Graphics.PasswordVersion, want.Graphics.PasswordVersion) {
		return "", nil
	}
	*is.passwd = want.Graphics.Password
	return x.Devices.Graphics[n].Marshal()
}
