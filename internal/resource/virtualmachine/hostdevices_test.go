package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// hardware is a host with some devices, and the domains in it.
type hardware struct {
	devices []host.NodeDevice
	domains []host.Domain
	err     error
}

func (h hardware) NodeDevices(context.Context) ([]host.NodeDevice, error) { return h.devices, h.err }
func (h hardware) Domains(context.Context) ([]host.Domain, error)         { return h.domains, nil }

const mdevID = "c2177883-f1bb-47f0-914d-32a22e3a8804"

var (
	gpu      = domainxml.HostDevice{Kind: "pci", Address: "0000:01:00.0"}
	keyboard = domainxml.HostDevice{Kind: "usb", Model: "046d:c31c"}
	vgpu     = domainxml.HostDevice{Kind: "mdev", Address: mdevID, Model: "vfio-pci"}
)

// running is a domain with devices of the host, live.
func running(name string, devices ...string) host.Domain {
	return host.Domain{Name: name, UUID: name, Live: "<domain type='kvm' id='1'><devices>" + strings.Join(devices, "") + "</devices></domain>"}
}

func TestRefuseHostDevices(t *testing.T) {
	all := []host.NodeDevice{
		{Kind: "pci", Address: "0000:00:1f.0", Vendor: "8086", Product: "0001", Class: "060100"},
		{Kind: "pci", Address: "0000:00:02.0", Vendor: "8086", Product: "0002", Class: "030000"},
		{Kind: "pci", Address: "0000:01:00.0", Vendor: "10de", Product: "1eb0", Class: "030000"},
		{Kind: "pci", Address: "0000:01:00.1", Vendor: "10de", Product: "10f8", Class: "040300"},
		{Kind: "pci", Address: "0000:03:00.0", Vendor: "1af4", Product: "1041", Class: "020000"},
		{Kind: "usb", Address: "1.4", Port: "1-1.2", Vendor: "046d", Product: "c31c"},
		{Kind: "usb", Address: "1.5", Port: "1-1.3", Vendor: "046d", Product: "c31c"},
		{Kind: "mdev", Address: mdevID, Type: "nvidia-11"},
	}
	usb := func(n int) string {
		return fmt.Sprintf("<hostdev mode='subsystem' type='usb'><source><vendor id='0x046d'/><product id='0xc31c'/><address bus='1' device='%d'/></source></hostdev>", n)
	}
	stored := host.Domain{Name: "off", UUID: "off", Stored: running("", gpu.Element()).Live}
	for name, c := range map[string]struct {
		host  hardware
		named domainxml.HostDevice
		want  string
	}{
		"there": {hardware{devices: all, domains: []host.Domain{running("web"), stored}}, gpu, ""},
		"a missing function": {
			hardware{devices: all},
			domainxml.HostDevice{Kind: "pci", Address: "0000:01:00.2"},
			"Host a has no PCI device 0000:01:00.2. It has 0000:01:00.0 (10de:1eb0), 0000:01:00.1 (10de:10f8), 0000:00:02.0 (8086:0002) and 1 more. ",
		},
		"a missing model": {
			hardware{devices: all}, domainxml.HostDevice{Kind: "usb", Model: "046d:c077"}, "no USB device 046d:c077. It has 1.4 (046d:c31c), 1.5 (046d:c31c). ",
		},
		"a missing number":            {hardware{devices: all}, domainxml.HostDevice{Kind: "usb", Address: "2.4"}, "no USB device 2.4. It has 1.4"},
		"none of the kind":            {hardware{devices: all[:5]}, vgpu, "no mediated device " + mdevID + ". It has none of that kind."},
		"another one":                 {hardware{devices: all}, domainxml.HostDevice{Kind: "mdev", Address: "a"}, "It has " + mdevID + "."},
		"taken":                       {hardware{devices: all, domains: []host.Domain{running("db", gpu.Element())}}, gpu, "Domain db, which runs on host a, has PCI device 0000:01:00.0."},
		"taken, as an interface":      {hardware{devices: all, domains: []host.Domain{running("db", "<interface type='hostdev'><source><address type='pci' domain='0' bus='1' slot='0' function='0'/></source></interface>")}}, gpu, "Domain db, "},
		"taken, mediated":             {hardware{devices: all, domains: []host.Domain{running("db", vgpu.Element())}}, vgpu, "Domain db, "},
		"of its own":                  {hardware{devices: all, domains: []host.Domain{running("self", gpu.Element())}}, gpu, ""},
		"one of two is free":          {hardware{devices: all, domains: []host.Domain{running("db", usb(4))}}, keyboard, ""},
		"both are taken":              {hardware{devices: all, domains: []host.Domain{running("db", usb(4)), running("ci", usb(5))}}, keyboard, "has USB device 046d:c31c."},
		"without udev":                {hardware{err: fmt.Errorf("a: %w", host.ErrNoNodeDevices)}, gpu, ""},
		"without udev, taken":         {hardware{err: host.ErrNoNodeDevices, domains: []host.Domain{running("db", gpu.Element())}}, gpu, "Domain db, "},
		"not answered":                {hardware{err: errors.New("down"), domains: []host.Domain{running("db", gpu.Element())}}, gpu, "error: down"},
		"with a domain without sense": {hardware{devices: all, domains: []host.Domain{{Name: "x", UUID: "x", Live: "<hostdev"}}}, gpu, ""},
	} {
		t.Run(name, func(t *testing.T) {
			said, diags := "", diag.Diagnostics{}
			err := refuseHostDevices(t.Context(), c.host, "a", []domainxml.HostDevice{c.named},
				func(d host.Domain) bool { return d.Name == "self" }, &diags)
			for _, d := range diags {
				said += d.Detail()
			}
			if err != nil {
				said += "error: " + err.Error()
			}
			if !strings.Contains(said, c.want) || c.want == "" && said != "" || len(said) > 300 {
				t.Errorf("%d characters: %s", len(said), said)
			}
		})
	}
}

// Devices that a running machine has already are not asked about, nor those of a machine that stays off.
func TestNewHostDevices(t *testing.T) {
	m := func(host string, running bool, devices ...domainxml.HostDevice) model {
		text := "<sound model='ac97'/>"
		for _, d := range devices {
			text += d.Element()
		}
		return model{Host: types.StringValue(host), Running: types.BoolValue(running), DevicesXML: types.StringValue(text)}
	}
	unknown := m("a", true, gpu)
	unknown.Running = types.BoolUnknown()
	optional := m("a", true)
	optional.DevicesXML = types.StringValue(strings.Replace(keyboard.Element(), "<source>", "<source startupPolicy='optional'>", 1))
	for name, c := range map[string]struct {
		plan, state model
		want        int
	}{
		"new":                   {m("a", true, gpu, keyboard), model{}, 2},
		"new, and off":          {m("a", false, gpu), model{}, 0},
		"new, and perhaps off":  {unknown, model{}, 1},
		"without any":           {m("a", true), model{}, 0},
		"of no known text":      {model{Host: types.StringValue("a"), DevicesXML: types.StringUnknown()}, model{}, 0},
		"unchanged":             {m("a", true, gpu), m("a", true, gpu), 0},
		"one more":              {m("a", true, gpu, vgpu), m("a", true, gpu), 1},
		"unchanged, is started": {m("a", true, gpu), m("a", false, gpu), 1},
		"elsewhere":             {m("b", true, gpu), m("a", true, gpu), 1},
		"optional":              {optional, model{}, 0},
	} {
		if got := c.plan.newHostDevices(c.state); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
