package domainxml

import (
	"strings"
	"testing"
)

func TestDevicesXML_RefusesUnsupportedDevices(t *testing.T) {
	for text, want := range map[string]string{
		`<sound model='ac97'`:               "not well-formed",
		`  `:                                "no element",
		`ac97`:                              "no element",
		`<sound/>ac97`:                      "text between",
		`<sound model='ac97' volume='11'/>`: "attribute volume of <sound>",
		`<sound model='ac97'><codek type='duplex'/></sound>`:                                       "element <codek> of <sound>",
		`<sound model='ac97'/><sound model='ich6'><codec type='x' y='z'/></sound>`:                 "attribute y of <codec>",
		`<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>`:     "use guest_agent",
		`<channel type='spicevmc'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>`: "use guest_agent",
		`<sound model='ac97'><alias name='ua-mine'/></sound>`:                                      "leave that out",
		`<hostdev mode='subsystem' type='pci'><source/><rom file='a.rom'/></hostdev>`:              `<rom file="a.rom">`,
		`<sound model='/a'/>`:                                                                         `<sound model="/a">`,
		`<sound>iscsi://a</sound>`:                                                                    `"iscsi://a"`,
		`<sund model='ac97'/>`:                                                                        "<sund> is not",
		`<sound/><watchdog model='diag288'/>`:                                                         "<watchdog> is not",
		`<vsock/><vsock model='virtio'/>`:                                                             "more than one <vsock>",
		`<memballoon model='none'/><memballoon model='virtio'/>`:                                      "more than one <memballoon>",
		`<vsock model='virtio'><cid auto='yes' path='/dev/vhost-vsock'/></vsock>`:                     "path",
		`<hostdev mode='subsystem' type='pci'><driver model='vfio-x'/><source/></hostdev>`:            "names a module",
		`<disk type='file' device='disk'/>`:                                                           "<disk> is not",
		`<hostdev mode='subsystem' type='scsi'><source protocol='iscsi' name='iqn'/></hostdev>`:       "documentation of devices_xml",
		`<hostdev type='pci'><source><address bus='1' slot='0' function='0'/></source></hostdev>`:     "<hostdev> is not",
		`<hostdev mode='subsystem' type='PCI'><source><address bus='1' slot='0'/></source></hostdev>`: "<hostdev> is not",
	} {
		t.Run(text, func(t *testing.T) {
			if err := CheckDevices(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		})
	}
}

func TestDevicesXML_TakesKnownDevices(t *testing.T) {
	for _, text := range []string{
		`<sound model='ac97'/><input type="tablet" bus="usb"/>`,
		`<!-- a/b --> <panic model='isa'><address type='isa' iobase='0x505'/></panic>`,
		`<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product id='0xbeef'/></source></hostdev>`,
		`<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0' bus='1' slot='0' function='0'/></source><rom bar='off'/></hostdev>`,
		`<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='c2177883-f1bb-47f0-914d-32a22e3a8804'/></source></hostdev>`,
		`<channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>`,
		`<redirdev bus='usb' type='spicevmc'/><smartcard mode='passthrough' type='spicevmc'/>`,
		`<vsock model='virtio'><cid auto='no' address='3'/></vsock><memballoon model='none'/>`,
		`<vsock><cid auto='yes'/></vsock><memballoon model='virtio' autodeflate='on' freePageReporting='on'><stats period='5'/></memballoon>`,
		`<controller type='scsi' index='1' model='virtio-scsi'/><hub type='usb'/><crypto model='virtio' type='qemu'><backend model='builtin'/></crypto>`,
	} {
		if err := CheckDevices(text); err != nil {
			t.Errorf("refused: %s: %v", text, err)
		}
	}
}

// An earlier version took other devices: they go with the text.
func TestDevicesXML_RemovesDevicesOfAnyKind(t *testing.T) {
	m := machines()["smallest"]
	m.DevicesXML = `<memory model='dimm'><target><size unit='M'>64</size></target></memory><channel type='pty'><target type='virtio' name='a'/></channel>`
	text, err := Build(m)
	if err != nil || strings.Count(text, xmlAlias) != 2 {
		t.Fatalf("%v in\n%s", err, text)
	}
	m.DevicesXML = ""
	if after, err := domain(t, text).Update(m); err != nil || strings.Contains(after, xmlAlias) {
		t.Errorf("%v in\n%s", err, after)
	}
}

func TestDevicesXML_ChangeReplacesOnlyOwnDevices(t *testing.T) {
	m := machines()["smallest"]
	m.DevicesXML = `<sound model="ac97"/><input type="keyboard" bus="virtio"/>`
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "</devices>", `<input type="mouse" bus="ps2"></input></devices>`, 1)
	m.DevicesXML = `<input type="tablet" bus="usb"/>`
	after, err := domain(t, text).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]bool{
		"<sound": false, "keyboard": false, `type="mouse"`: true, `type="tablet"`: true, "ua-xml-0": true, "ua-xml-1": false,
	} {
		if strings.Contains(after, part) != want {
			t.Errorf("%s: want %v in\n%s", part, want, after)
		}
	}
}

func TestDevicesXML_MissingDeviceIsDrift(t *testing.T) {
	m := machines()["devices"]
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	gone := strings.Replace(text, "ua-xml-1", "input0", 1)
	is, err := Parse(gone)
	if err != nil || is.DevicesXML != "" {
		t.Errorf("read is %q, %v", is.DevicesXML, err)
	}
	after, err := domain(t, gone).Update(m)
	if is, e := Parse(after); err != nil || e != nil || is.DevicesXML != m.DevicesXML {
		t.Errorf("after an update it is %q, %v, %v", is.DevicesXML, err, e)
	}
}
