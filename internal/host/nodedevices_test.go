package host

import (
	"reflect"
	"strings"
	"testing"
)

func TestNodeDevice_ReadsLibvirtsDescription(t *testing.T) {
	group := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		text string
		want NodeDevice
	}{
		"PCI": {
			`<device><name>pci_0000_0a_1f_2</name><path>/sys/devices/pci0000:00/0000:0a:1f.2</path><parent>computer</parent>
			<driver><name>snd_hda_intel</name></driver><capability type='pci'><class>0x040300</class><domain>0</domain><bus>10</bus><slot>31</slot>
			<function>2</function><product id='0x10f8'>TU104 HD Audio Controller</product><vendor id='0x10de'>NVIDIA Corporation</vendor>
			<iommuGroup number='0'><address domain='0x0000' bus='0x0a' slot='0x1f' function='0x2'/></iommuGroup></capability></device>`,
			NodeDevice{
				Kind: "pci", Address: "0000:0a:1f.2", Vendor: "10de", VendorName: "NVIDIA Corporation", Product: "10f8",
				ProductName: "TU104 HD Audio Controller", Class: "040300", Driver: "snd_hda_intel", Group: group(0), Parent: "computer",
			},
		},
		"PCI without names, driver and IOMMU": {
			`<device><name>pci_0000_00_00_0</name><path>/sys/devices/pci0000:00/0000:00:00.0</path><parent>computer</parent><capability type='pci'>
			<class>0x060000</class><domain>0</domain><bus>0</bus><slot>0</slot><function>0</function><product id='0x0d57'/><vendor id='0x8086'/>
			<pci-express/></capability></device>`,
			NodeDevice{Kind: "pci", Address: "0000:00:00.0", Vendor: "8086", Product: "0d57", Class: "060000", Parent: "computer"},
		},
		"USB": {
			`<device><name>usb_1_1_2</name><path>/sys/devices/pci0000:00/0000:00:1a.0/usb1/1-1/1-1.2</path><devnode type='dev'>/dev/bus/usb/001/004</devnode>
			<parent>usb_1_1</parent><driver><name>usb</name></driver><capability type='usb_device'><bus>1</bus><device>4</device>
			<product id='0xc31c'>Keyboard K120</product><vendor id='0x046d'>Logitech, Inc.</vendor></capability></device>`,
			NodeDevice{
				Kind: "usb", Address: "1.4", Port: "1-1.2", Vendor: "046d", VendorName: "Logitech, Inc.", Product: "c31c",
				ProductName: "Keyboard K120", Driver: "usb", Parent: "usb_1_1",
			},
		},
		"mediated": {
			`<device><name>mdev_c2177883_f1bb_47f0_914d_32a22e3a8804_0000_3b_00_0</name>
			<path>/sys/devices/pci0000:3a/0000:3b:00.0/C2177883-f1bb-47f0-914d-32a22e3a8804</path><parent>pci_0000_3b_00_0</parent>
			<driver><name>vfio_mdev</name></driver><capability type='mdev'><type id='nvidia-11'/><uuid>C2177883-f1bb-47f0-914d-32a22e3a8804</uuid>
			<parent_addr>0000:3b:00.0</parent_addr><iommuGroup number='143'/></capability></device>`,
			NodeDevice{
				Kind: "mdev", Address: "c2177883-f1bb-47f0-914d-32a22e3a8804", Driver: "vfio_mdev", Group: group(143), Type: "nvidia-11",
				Parent: "pci_0000_3b_00_0",
			},
		},
		"mediated, before libvirt 7.3": {
			`<device><name>mdev_a</name><path>/sys/devices/pci0000:3a/0000:3b:00.0/c2177883-f1bb-47f0-914d-32a22e3a8804</path><parent>pci_0000_3b_00_0</parent>
			<capability type='mdev'><type id='nvidia-11'/><iommuGroup number='143'/></capability></device>`,
			NodeDevice{
				Kind: "mdev", Address: "c2177883-f1bb-47f0-914d-32a22e3a8804", Group: group(143), Type: "nvidia-11", Parent: "pci_0000_3b_00_0",
			},
		},
		"mediated, only defined": {
			`<device><name>mdev_a</name><parent>pci_0000_3b_00_0</parent><capability type='mdev'><type id='nvidia-11'/>
			<uuid>c2177883-f1bb-47f0-914d-32a22e3a8804</uuid></capability></device>`, NodeDevice{Parent: "pci_0000_3b_00_0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := nodeDevice(c.text); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := nodeDevice("<device"); err == nil {
		t.Error("taken: what is no XML")
	}
}

// libvirt's schema wants the vendor before the product, and both before the address, and libvirtxml writes them the other way round.
func TestAsInSchema_USB(t *testing.T) {
	const vendor, product, address = `<vendor id="0x1"></vendor>`, `<product id="0x2"></product>`, `<address bus="1" device="2"></address>`
	for is, want := range map[string]string{
		`<source>` + product + vendor + `</source>`:                                           `<source>` + vendor + product + `</source>`,
		"<source startupPolicy=\"optional\">\n  " + product + "\n  " + vendor + "\n</source>": "<source startupPolicy=\"optional\">\n  " + vendor + "\n" + product + "\n  </source>",
		`<source>` + address + product + vendor + `</source>`:                                 `<source>` + vendor + product + address + `</source>`,
		`<source>` + address + `</source>`:                                                    `<source>` + address + `</source>`,
		`<source>` + vendor + product + `</source>`:                                           `<source>` + vendor + product + `</source>`,
		`<source/><a>` + product + vendor + `</a>`:                                            `<source/><a>` + product + vendor + `</a>`,
		`<source>` + product + vendor + `</source><source>` + product + vendor + `</source>`:  `<source>` + vendor + product + `</source><source>` + vendor + product + `</source>`,
	} {
		if got := asInSchema(is); strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(want), "") {
			t.Errorf("%s became %s", is, got)
		}
	}
}
