package domainxml

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofNewerLibvirt is a domain of a libvirt with more elements than libvirtxml knows; tests change its machine in several ways.
const ofNewerLibvirt = `<domain type='qemu' xmlns:our='https://example.org/our'><name>theirs</name><memory unit='KiB' wear='even'>131072</memory>
	<cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='1' soft='a&amp;b'/></cputune>
	<features><acpi/><moonlight state='on'/></features><lunar phase='full'><tide>high</tide></lunar><our:note about='it'/>
	<devices><disk type='file' device='disk'><driver name='qemu' type='raw' lanes='2'/><source file='/a' since='1999'/><target dev='vda' bus='virtio'/></disk>
	<disk type='file' device='disk'><driver name='qemu' type='raw' lanes='4'/><source file='/b' since='2000'/><target dev='vdb' bus='virtio'/></disk>
	<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br0'/><model type='virtio' gait='trot'/></interface>
	<interface type='bridge'><mac address='52:54:00:00:00:02'/><source bridge='br0'/><model type='virtio'/></interface>
	<graphics type='vnc' port='-1' autoport='yes' tint='red'><listen type='address' address='127.0.0.1'/></graphics>
	<teleporter model='tx'/></devices></domain>`

func TestPreserve_UnknownElements(t *testing.T) {
	m, err := Parse(ofNewerLibvirt)
	if err != nil {
		t.Fatal(err)
	}
	m.Metadata.Phase, m.Memory = Ready, 262144
	delete(m.Disks, "vda")
	m.Disks["vdb"] = Disk{Device: Fixed, Bus: "virtio", Volume: local("other", "g1")}
	m.Interfaces = map[string]Interface{"net1": m.Interfaces["net1"], "net0": m.Interfaces["net0"], "lan": {Bridge: "br1", Model: "virtio"}}
	m.Graphics = &Graphics{Type: Spice, Listen: "127.0.0.1"}
	text, err := domain(t, ofNewerLibvirt).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{
		`<memory unit="KiB" wear="even">262144`, `<vcpupin vcpu="1" cpuset="1" soft="a&amp;b">`, `<moonlight state='on'/></features>`,
		`<lunar phase='full'><tide>high</tide></lunar>`, `<our:note about='it'/>`, `xmlns:our="https://example.org/our"`,
		`lanes="4"`, `<model type="virtio" gait="trot">`, `<teleporter model='tx'/></devices>`,
	} {
		if !strings.Contains(strings.NewReplacer(">\n  </devices>", "></devices>", "\n  </features>", "</features>", "\n  <teleporter", "<teleporter").
			Replace(text), kept) {
			t.Errorf("%s is not in:\n%s", kept, text)
		}
	}
	for _, gone := range []string{`lanes="2"`, "since=", "tint="} {
		if strings.Contains(text, gone) {
			t.Errorf("%s is of what is gone:\n%s", gone, text)
		}
	}
	if strings.Count(text, "gait=") != 1 || strings.Count(text, "soft=") != 1 {
		t.Errorf("something is there twice:\n%s", text)
	}
	again, err := domain(t, text).Update(m)
	if diff := cmp.Diff(strings.Fields(text), strings.Fields(again)); err != nil || diff != "" {
		t.Errorf("%v, the same update once more changes it (-once +twice):\n%s", err, diff)
	}
}

func TestUnsupported_NamesUnknownElements(t *testing.T) {
	names := unsupported(t, ofNewerLibvirt)
	for _, want := range []string{
		"interface 52:54:00:00:00:01/model/@gait", "disk vda/driver/@lanes", "lunar", "features/moonlight", "example.org:note", "cputune/vcpupin/@soft",
		"teleporter", "memory/@wear",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
}

// Everything that libvirt writes today is known.
func TestPreserve_NothingKnownIsUnknown(t *testing.T) {
	d, err := Unmarshal(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := unknownTo(d, stored(t), func() (string, error) { return d.Marshal() })
	for _, p := range all {
		if !strings.HasPrefix(p.name, "xmlns:") {
			t.Errorf("%s is not known, %v", p.name, err)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// Each piece belongs to one device, which may move and may have others beside it.
func TestPreserve_StaysWithItsDevice(t *testing.T) {
	const (
		place = `<address type='drive' controller='0' bus='0' target='0' unit='0'/>`
		cdrom = `<disk type='file' device='cdrom' lid='open'><source file='/iso'/><target dev='sda' bus='sata'/><readonly/>` + place + `</disk>`
		scsi  = `<disk type='file' device='disk' spin='up'><source file='/a'/><target dev='sdb' bus='scsi'/>` + place + `</disk>`
		vda   = `<disk type='file' device='disk' side='a'><source file='/a'/><target dev='vda' bus='virtio'/></disk>`
		vdb   = `<disk type='file' device='disk' side='b'><source file='/b'/><target dev='vdb' bus='virtio'/></disk>`
		net   = `<interface type='bridge' gait='trot'><mac address='52:54:00:00:00:01'/><source bridge='br0'/><model type='virtio'/></interface>`
		root  = `<controller type='pci' index='0' model='pcie-root' shade='1'/><controller type='pci' index='1' model='pcie-root-port' shade='2'/>`
	)
	fixed := func(bus string) Disk { return Disk{Device: Fixed, Bus: bus, Volume: local("other", "g1")} }
	for name, c := range map[string]struct {
		devices string
		change  func(*Machine)
		is      []string
		gone    string
	}{
		"two of what is known once": {
			devices: `<pstore backend='virtio'><size unit='KiB' n='1'>8</size></pstore><pstore backend='virtio'><size unit='KiB' n='2'>8</size></pstore>`,
			is:      []string{`<size unit="KiB" n="1">8</size>`, `<pstore backend='virtio'><size unit='KiB' n='2'>8</size></pstore>`},
		},
		"two of what is known once, with attributes": {
			devices: `<pstore backend='virtio' n='1'/><pstore backend='virtio' n='2'/>`,
			is:      []string{`<pstore backend="virtio" n="1">`, `<pstore backend='virtio' n='2'/>`},
		},
		"one place on two buses": {
			devices: scsi + cdrom, is: []string{`device="cdrom" lid="open">`, `device="disk" spin="up">`},
		},
		"one place on two buses, and one goes": {
			devices: cdrom + scsi, change: func(m *Machine) { delete(m.Disks, "sdb") },
			is: []string{`device="cdrom" lid="open">`}, gone: "spin=",
		},
		"another disk in the place of the first": {
			devices: vda + vdb, change: func(m *Machine) { delete(m.Disks, "vda"); m.Disks["data"] = fixed("scsi") },
			is: []string{`side="b"`}, gone: `side="a"`,
		},
		"another disk with the target of the first": {
			devices: vda + vdb, change: func(m *Machine) { delete(m.Disks, "vda"); m.Disks["data"] = fixed("virtio") },
			is: []string{`side="b"`, `<target dev="vda"`}, gone: `side="a"`,
		},
		"another disk for the only one": {
			devices: vda, change: func(m *Machine) { m.Disks = map[string]Disk{"data": fixed("scsi")} }, gone: "side=",
		},
		"another target": {
			devices: scsi, change: func(m *Machine) { d := m.Disks["sdb"]; d.Target = "sdc"; m.Disks["sdb"] = d },
			is: []string{`spin="up"`, `dev="sdc"`},
		},
		"another interface for the only one": {
			devices: net, change: func(m *Machine) {
				m.Interfaces = map[string]Interface{"lan": {Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:02"}}
			}, gone: "gait=",
		},
		"another address of an interface": {
			devices: strings.Replace(net, "<source", "<alias name='ua-net-lan'/><source", 1),
			change:  func(m *Machine) { i := m.Interfaces["lan"]; i.MAC = "52:54:00:00:00:02"; m.Interfaces["lan"] = i },
			is:      []string{`gait="trot"`, "00:02"},
		},
		"a further controller": {
			devices: root, change: func(m *Machine) { m.Disks["data"] = fixed("scsi") }, is: []string{`model="pcie-root" shade="1"`, `shade="2"`, "virtio-scsi"},
		},
		"what can't be kept": {devices: vda + `<lunar phase='full' phase='new'/>`, gone: "lunar"},
	} {
		t.Run(name, func(t *testing.T) { stays(t, c.devices, c.change, c.is, c.gone) })
	}
}

// stays updates a domain that has these devices twice, and checks that the given pieces are in it exactly once.
func stays(t *testing.T, devices string, change func(*Machine), is []string, gone string) {
	t.Helper()
	theirs := `<domain type='qemu'><name>theirs</name><memory unit='KiB'>131072</memory><devices>` + devices + `</devices></domain>`
	m, err := Parse(theirs)
	if err != nil {
		t.Fatal(err)
	}
	m.Metadata.Phase = Ready
	if change != nil {
		change(&m)
	}
	text, err := domain(t, theirs).Update(m)
	if err != nil || !wellFormed(text) {
		t.Fatalf("%v, not well-formed:\n%s", err, text)
	}
	for _, kept := range is {
		if strings.Count(text, kept) != 1 {
			t.Errorf("%s is not once in:\n%s", kept, text)
		}
	}
	if gone != "" && strings.Contains(text, gone) {
		t.Errorf("%s is of what is gone:\n%s", gone, text)
	}
	if strings.Count(text, "<iommu") != strings.Count(theirs, "<iommu") {
		t.Errorf("not as many as there were:\n%s", text)
	}
	if again, err := domain(t, text).Update(m); err != nil || len(strings.Fields(again)) != len(strings.Fields(text)) {
		t.Errorf("%v, the same update once more changes it to:\n%s", err, again)
	}
}

func TestPreserve_MalformedXML(t *testing.T) {
	for text, want := range map[string]bool{
		`<a b='1' c='1'/>`: true, `<a xmlns:o='u' b='1' o:b='1'/>`: true, `<a b='1' b='1'/>`: false,
		`<a xmlns:o='u' xmlns:p='u' o:b='1' p:b='1'/>`: false, `<a><b></a>`: false, `<a>`: false,
	} {
		if wellFormed(text) != want {
			t.Errorf("%s is well-formed: %v", text, !want)
		}
	}
}
