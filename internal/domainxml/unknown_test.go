package domainxml

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// newer is a domain of a libvirt that has more than libvirtxml knows, of which a machine is changed in several ways.
const newer = `<domain type='qemu' xmlns:our='https://example.org/our'><name>theirs</name><memory unit='KiB' wear='even'>131072</memory>
	<cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='1' soft='a&amp;b'/></cputune>
	<features><acpi/><moonlight state='on'/></features><lunar phase='full'><tide>high</tide></lunar><our:note about='it'/>
	<devices><disk type='file' device='disk'><driver name='qemu' type='raw' lanes='2'/><source file='/a' since='1999'/><target dev='vda' bus='virtio'/></disk>
	<disk type='file' device='disk'><driver name='qemu' type='raw' lanes='4'/><source file='/b' since='2000'/><target dev='vdb' bus='virtio'/></disk>
	<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br0'/><model type='virtio' gait='trot'/></interface>
	<interface type='bridge'><mac address='52:54:00:00:00:02'/><source bridge='br0'/><model type='virtio'/></interface>
	<graphics type='vnc' port='-1' autoport='yes' tint='red'><listen type='address' address='127.0.0.1'/></graphics>
	<teleporter model='tx'/></devices></domain>`

func TestWhatIsNotKnownStays(t *testing.T) {
	m, err := Parse(newer)
	if err != nil {
		t.Fatal(err)
	}
	m.Mark.Phase, m.Memory = Ready, 262144
	delete(m.Disks, "vda")
	m.Disks["vdb"] = Disk{Device: Fixed, Bus: "virtio", Volume: local("other", "g1")}
	m.Interfaces = map[string]Interface{"net1": m.Interfaces["net1"], "net0": m.Interfaces["net0"], "lan": {Bridge: "br1", Model: "virtio"}}
	m.Graphics = &Graphics{Type: Spice, Listen: "127.0.0.1"}
	text, err := Update(newer, m)
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
	again, err := Update(text, m)
	if diff := cmp.Diff(strings.Fields(text), strings.Fields(again)); err != nil || diff != "" {
		t.Errorf("%v, the same update once more changes it (-once +twice):\n%s", err, diff)
	}
}

func TestWhatIsNotKnownIsNamed(t *testing.T) {
	names, err := Unmodelled(newer)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"gait of model", "lanes of driver", "lunar of domain", "moonlight of features", "note of domain", "soft of vcpupin", "teleporter of devices",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
}

// What libvirt writes today is known.
func TestNothingIsMissedInWhatIsKnown(t *testing.T) {
	d, err := Unmarshal(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	if names, err := unknownNames(d, stored(t)); err != nil || len(names) != 0 {
		t.Errorf("not known are %v, %v", names, err)
	}
}
