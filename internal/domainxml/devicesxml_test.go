package domainxml

import (
	"strings"
	"testing"
)

func TestDevicesXML_RefusesUnsupportedDevices(t *testing.T) {
	for text, want := range map[string]string{
		`<sound model='ac97'/><input type="tablet" bus="usb"/>`:                                                       "",
		`<!-- why --> <panic model='isa'><address type='isa' iobase='0x505'/></panic>`:                                "",
		`<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product id='0xbeef'/></source></hostdev>`: "",
		`<sound model='ac97'`:               "not well-formed",
		`  `:                                "no element",
		`ac97`:                              "no element",
		`<sound/>ac97`:                      "text between",
		`<sund model='ac97'/>`:              "<sund> is not a device",
		`<memballoon model='none'/>`:        "<memballoon> is not a device",
		`<sound model='ac97' volume='11'/>`: "attribute volume of <sound>",
		`<sound model='ac97'><codek type='duplex'/></sound>`:                                    "element <codek> of <sound>",
		`<sound model='ac97'/><sound model='ich6'><codec type='x' y='z'/></sound>`:              "attribute y of <codec>",
		`<disk type='file' device='disk'/>`:                                                     "use disks",
		`<graphics type='vnc'/>`:                                                                "use graphics",
		`<interface type='user'/>`:                                                              "use interfaces",
		`<hostdev mode='subsystem' type='scsi'><source protocol='iscsi' name='iqn'/></hostdev>`: "use disks",
		`<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>`:  "use guest_agent",
		`<sound model='ac97'><alias name='ua-mine'/></sound>`:                                   "leave that out",
	} {
		t.Run(text, func(t *testing.T) {
			switch err := CheckDevices(text); {
			case want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("the error is %v, want %q", err, want)
			}
		})
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
