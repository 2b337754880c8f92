package domainxml

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestHostDevicesIn_ReadsItsElements(t *testing.T) {
	for _, d := range []HostDevice{
		{Kind: "pci", Address: "0000:0a:1f.2"},
		{Kind: "usb", Address: "1.4"},
		{Kind: "usb", Model: "046d:c31c"},
		{Kind: "mdev", Address: "c2177883-f1bb-47f0-914d-32a22e3a8804", Model: "vfio-ccw"},
	} {
		if err := CheckDevices(d.Element()); err != nil {
			t.Errorf("%s: %v", d.Element(), err)
		}
		if got, err := HostDevicesIn("<sound model='ac97'/>" + d.Element()); err != nil || !slices.Equal(got, []HostDevice{d}) {
			t.Errorf("%s is read as %v, %v", d.Element(), got, err)
		}
	}
}

func TestHostDevicesIn_AnySpelling(t *testing.T) {
	for text, want := range map[string]HostDevice{
		`<hostdev mode='subsystem' type='pci'><source><address bus='10' slot='0x1F'/></source></hostdev>`: {Kind: "pci", Address: "0000:0a:1f.0"},
		`<hostdev mode='subsystem' type='usb'><source startupPolicy='optional'><product id='0xC31C'/><vendor id='0x46d'/></source></hostdev>`: {
			Kind: "usb", Model: "046d:c31c", Optional: true,
		},
		`<hostdev mode='subsystem' type='usb'><source><vendor id='0x046d'/><product id='0xc31c'/><address bus='001' device='4'/></source></hostdev>`: {
			Kind: "usb", Model: "046d:c31c", Address: "1.4",
		},
		`<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='C2177883-F1BB-47F0-914D-32A22E3A8804'/></source></hostdev>`: {
			Kind: "mdev", Model: "vfio-pci", Address: "c2177883-f1bb-47f0-914d-32a22e3a8804",
		},
	} {
		if got, err := HostDevicesIn(text); err != nil || !slices.Equal(got, []HostDevice{want}) {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", `<sound model='ac97'/>`, `<!-- <hostdev/> -->`, `<hostdev mode='subsystem' type='pci'/>`, `<hostdev mode='subsystem' type='usb'/>`,
		`<hostdev mode='subsystem' type='mdev'/>`,
	} {
		if got, err := HostDevicesIn(text); err != nil || len(got) > 0 {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
}

// An interface of the type hostdev has a device, too, also one that a network has chosen.
func TestHostDevicesOf_Interfaces(t *testing.T) {
	got, err := HostDevicesOf(`<domain type='kvm'><name>a</name><devices>
		<hostdev mode='subsystem' type='usb'><source><vendor id='0x046d'/><product id='0xc31c'/><address bus='1' device='4'/></source></hostdev>
		<interface type='hostdev'><source><address type='pci' domain='0x0000' bus='0x0a' slot='0x1f' function='0x2'/></source></interface>
		</devices></domain>`)
	want := []HostDevice{{Kind: "usb", Model: "046d:c31c", Address: "1.4"}, {Kind: "pci", Address: "0000:0a:1f.2"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHostDevice_Is(t *testing.T) {
	byModel, first := HostDevice{Kind: "usb", Model: "046d:c31c"}, HostDevice{Kind: "usb", Model: "046d:c31c", Address: "1.4"}
	second, pci := HostDevice{Kind: "usb", Model: "046d:c31c", Address: "1.5"}, HostDevice{Kind: "pci", Address: "0000:0a:1f.2"}
	for _, c := range []struct {
		a, b HostDevice
		want bool
	}{{byModel, first, true}, {byModel, second, true}, {first, second, false}, {first, first, true}, {pci, pci, true}, {pci, byModel, false}} {
		if c.a.Is(c.b) != c.want || c.b.Is(c.a) != c.want {
			t.Errorf("%v is %v: want %v", c.a, c.b, c.want)
		}
	}
}

// libvirt adds a memballoon to each domain. A configured one goes before it, and gives way to it again.
func TestDevicesXML_SingleDevices(t *testing.T) {
	const libvirts = `<memballoon model="virtio"><alias name="balloon0"></alias></memballoon></devices>`
	dropped := regexp.MustCompile(`(<memballoon model="none">)\s*<alias [^>]*></alias>`) // as libvirt does
	m := machines()["smallest"]
	bare, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	defined := strings.Replace(bare, "</devices>", libvirts, 1)
	for _, text := range []string{
		`<memballoon model="none"/>`, `<memballoon model="virtio" autodeflate="on"><stats period="5"/></memballoon>`,
		`<vsock model="virtio"><cid auto="yes"/></vsock><memballoon model="none"/><sound model="ac97"/>`,
	} {
		m.DevicesXML = text
		with, err := domain(t, defined).Update(m)
		if err != nil || strings.Contains(with, "balloon0") || strings.Count(with, "<memballoon") != 1 {
			t.Fatalf("%v in\n%s", err, with)
		}
		with = dropped.ReplaceAllString(with, "$1")
		if is, err := Parse(with); err != nil || is.DevicesXML != text {
			t.Errorf("%s is read as %q, %v, of\n%s", text, is.DevicesXML, err, with)
		}
		if names := unsupported(t, with); slices.Contains(names, "vsock") {
			t.Errorf("%v are not supported", names)
		}
		if is, err := Parse(strings.Replace(with, `<memballoon model="none"`, `<memballoon model="virtio"`, 1)); err != nil ||
			(is.DevicesXML == text) != !strings.Contains(text, "none") {
			t.Errorf("another balloon than in %s is read as %q, %v", text, is.DevicesXML, err)
		}
		m.DevicesXML = ""
		without, err := domain(t, with).Update(m)
		if err != nil || strings.Contains(without, "<memballoon") || strings.Contains(without, "<vsock") {
			t.Errorf("%v in\n%s", err, without)
		}
	}
}
