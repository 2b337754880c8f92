package domainxml

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// local returns a volume in a pool, as a disk resource provides it.
func local(name, generation string) volume.Volume {
	return volume.Volume{Images: []volume.Image{{
		Type: "file", Format: "qcow2", Name: "/pools/ssd/" + name, AccessMode: volume.WriteExclusive,
		Hosts: []string{"node-a"}, Generation: generation,
	}}}
}

// running returns a machine with disks on each bus, none of which it boots from.
func running() Machine {
	return Machine{
		Name: "web", VCPUs: 1, Memory: 131072, Type: "pc", DomainType: "qemu", Boot: &Boot{Kernel: "/boot/vmlinux"},
		Metadata: Metadata{Owner: "prod", Phase: Ready},
		Disks: map[string]Disk{
			"data": {Volume: local("data", "g1"), Device: Fixed, Bus: "virtio"},
			"log":  {Volume: local("log", "g2"), Device: Fixed, Bus: "scsi"},
			"old":  {Volume: local("old", "g3"), Device: Fixed, Bus: "sata"},
			"net":  {Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio"},
		},
	}
}

func build(t *testing.T, m Machine) string {
	t.Helper()
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDisksToDetach(t *testing.T) {
	live := build(t, running())
	for name, c := range map[string]struct {
		change       func(m *Machine)
		loses, gains []string
		pending      string
	}{
		"nothing": {change: func(*Machine) {}},
		"another generation under the same name": {
			change: func(m *Machine) { m.Disks["data"] = Disk{Volume: local("data", "g9"), Device: Fixed, Bus: "virtio"} },
			loses:  []string{"data"}, pending: "disk data",
		},
		"a generation that nobody knows": {
			change: func(m *Machine) { m.Disks["data"] = Disk{Volume: local("data", ""), Device: Fixed, Bus: "virtio"} },
		},
		"another file": {
			change: func(m *Machine) { m.Disks["log"] = Disk{Volume: local("log2", "g4"), Device: Fixed, Bus: "scsi"} },
			loses:  []string{"log"}, pending: "disk log",
		},
		"another bus": {
			change: func(m *Machine) { m.Disks["log"] = Disk{Volume: local("log", "g2"), Device: Fixed, Bus: "virtio"} },
			loses:  []string{"log"}, pending: "disk log",
		},
		"a disk less": {change: func(m *Machine) { delete(m.Disks, "data") }, loses: []string{"data"}, pending: "disk data"},
		"a disk less that can't be unplugged": {
			change: func(m *Machine) { delete(m.Disks, "old") }, pending: "disk old",
		},
		"disks more": {
			change: func(m *Machine) {
				m.Disks["b"] = Disk{Volume: local("b", "g5"), Device: Fixed, Bus: "virtio"}
				m.Disks["a"] = Disk{Volume: local("a", "g6"), Device: Fixed, Bus: "scsi"}
				m.Disks["c"] = Disk{Volume: local("c", "g7"), Device: Fixed, Bus: "sata"}
			},
			gains: []string{"a", "b"}, pending: "disk a, disk b, disk c",
		},
		"another portal": {
			change: func(m *Machine) {
				moved := iscsi(volume.WriteExclusive, false)
				moved.Images[0].Servers = []volume.Server{{Host: "elsewhere", Port: ptr(int64(3260))}}
				m.Disks["net"] = Disk{Volume: moved, Device: Fixed, Bus: "virtio"}
			},
			pending: "disk net",
		},
		"another host in the binding": {
			change: func(m *Machine) {
				v := iscsi(volume.WriteExclusive, false)
				v.Images[0].Hosts = append(v.Images[0].Hosts, "node-c")
				m.Disks["net"] = Disk{Volume: v, Device: Fixed, Bus: "virtio"}
			},
		},
		"memory": {change: func(m *Machine) { m.Memory *= 2 }, pending: "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			want := running()
			c.change(&want)
			loses := domain(t, live).DisksToDetach(want)
			if !slices.Equal(loses, c.loses) {
				t.Errorf("it loses %v; want %v", loses, c.loses)
			}
			gains := domain(t, live).DisksToAttach(want)
			if !slices.Equal(gains, c.gains) {
				t.Errorf("it gains %v; want %v", gains, c.gains)
			}
			if pending, err := domain(t, live).Pending(want); err != nil || strings.Join(pending, ", ") != c.pending {
				t.Errorf("pending is %q, %v; want %q", pending, err, c.pending)
			}
		})
	}
}

// While a domain with an ephemeral disk runs, libvirt 9.0 has an overlay on it.
func TestDisksToDetach_RunningEphemeral(t *testing.T) {
	want := running()
	want.Disks["data"] = Disk{Volume: local("data", "g1"), Device: Fixed, Bus: "virtio", Ephemeral: true}
	const source, end = `<source file="/pools/ssd/data"></source>`, "\n      <backingStore></backingStore>"
	stored := build(t, want)
	live := strings.Replace(stored, source+end, `<source file="/pools/ssd/data.TRANSIENT-web" index="3"></source>
      <backingStore type="file" index="1"><format type="qcow2"></format>`+source+`<backingStore></backingStore></backingStore>`, 1)
	if live == stored {
		t.Fatal("the disk is not where this test looks for it:", stored)
	}
	loses := domain(t, live).DisksToDetach(want)
	if len(loses) != 0 {
		t.Errorf("it loses %v", loses)
	}
	if pending, err := domain(t, live).Pending(want); err != nil || len(pending) != 0 {
		t.Errorf("pending are %v, %v", pending, err)
	}
	if attached := domain(t, live).Attached(); !attached[0].Ephemeral || len(attached[0].Volume.Images) != 1 {
		t.Errorf("attached are %+v", attached)
	}
}

func TestPlug_SCSIDiskNeedsController(t *testing.T) {
	without := running()
	delete(without.Disks, "log")
	if gains := domain(t, build(t, without)).DisksToAttach(running()); len(gains) != 0 {
		t.Errorf("it gains %v", gains)
	}
}

func TestPlug_BootDeviceStays(t *testing.T) {
	m := running()
	m.Boot = nil
	live := build(t, m)
	m.Disks = map[string]Disk{}
	loses := domain(t, live).DisksToDetach(m)
	// data is the first disk, which is booted from; old is on SATA, which has no hot-plug.
	if !slices.Equal(loses, []string{"log", "net"}) {
		t.Errorf("it loses %v", loses)
	}
	ordered := running()
	ordered.Disks["net"] = Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio", BootOrder: 1}
	loses = domain(t, build(t, ordered)).DisksToDetach(m)
	if !slices.Equal(loses, []string{"data", "log"}) {
		t.Errorf("where one has an order, it loses %v", loses)
	}
}

// What a kernel that is booted directly has as its root is booted from, too. A kernel without one runs from its initial RAM disk.
func TestPlug_RootOfKernelStays(t *testing.T) {
	for cmdline, want := range map[string][]string{
		"":                             {"data", "log", "net"},
		"console=ttyS0 root=/dev/vda":  {"log", "net"},
		"root=/dev/vdb2 ro":            {"data", "log"},
		"root=UUID=6c1f0b3e ro":        {"log", "net"},
		"root=/dev/mapper/system-root": {"log", "net"},
		"root=/dev/vda root=/dev/sda1": {"data", "net"}, // Linux has the last one
	} {
		m := running()
		m.Boot.Cmdline = cmdline
		live := domain(t, build(t, m))
		if loses := live.DisksToDetach(Machine{}); !slices.Equal(loses, want) {
			t.Errorf("with %q it loses %v", cmdline, loses)
		}
	}
}

func TestPlug_StoredDeviceWithoutBootOrder(t *testing.T) {
	m := running()
	m.Disks["new"] = Disk{Volume: local("new", "g8"), Device: Fixed, Bus: "virtio", BootOrder: 1}
	device, err := domain(t, build(t, running())).Plug(domain(t, build(t, m)), "new")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(device, "/pools/ssd/new") || !strings.Contains(device, "ua-disk-new") || strings.Contains(device, "<boot") {
		t.Errorf("got %s", device)
	}
	if _, err := domain(t, build(t, running())).Plug(domain(t, build(t, running())), "new"); err == nil {
		t.Error("a disk that is not stored can be plugged in")
	}
}

// A drive that was removed from the stored definition stays in the running domain, and keeps its target in use until the next start.
func TestPlug_RenamesUsedTarget(t *testing.T) {
	before, after := running(), running()
	before.Disks["seed"] = Disk{Device: CDROM, Bus: "scsi"}
	after.Disks["new"] = Disk{Volume: local("new", "g8"), Device: Fixed, Bus: "scsi"}
	live, stored := build(t, before), build(t, after)
	for _, text := range []string{live, stored} {
		if !strings.Contains(text, `dev="sdc"`) {
			t.Fatalf("sdc is not named twice:\n%s", text)
		}
	}
	for key, target := range map[string]string{"new": "sdd", "data": "vdc"} {
		device, err := domain(t, live).Plug(domain(t, stored), key)
		if err != nil || !strings.Contains(device, `<target dev="`+target+`"`) {
			t.Errorf("%s is not named %s: %s, %v", key, target, device, err)
		}
	}
}

func TestLiveMetadata_OnlyPluggedDisks(t *testing.T) {
	want := running()
	want.Disks["data"] = Disk{Volume: local("data", "g9"), Device: Fixed, Bus: "virtio"}
	want.Disks["log"] = Disk{Volume: local("log", "g9"), Device: Fixed, Bus: "scsi"}
	live := build(t, running())
	metadata, err := domain(t, live).LiveMetadata(want, []string{"data"})
	if err != nil {
		t.Fatal(err)
	}
	for generation, there := range map[string]bool{"g1": false, "g9": true, "g2": true} {
		if strings.Count(metadata, `generation="`+generation+`"`) != map[bool]int{true: 1}[there] {
			t.Errorf("generation %s in %s", generation, metadata)
		}
	}
}

func TestAttached(t *testing.T) {
	d := domain(t, build(t, running()))
	attached, metadata := d.Attached(), d.Metadata()
	if metadata.Owner != "prod" || len(attached) != 4 {
		t.Fatalf("got %+v, %+v", attached, metadata)
	}
	for _, a := range attached {
		if a.Boots || a.Pluggable != (a.Key != "old") || len(a.Volume.Images) != 1 {
			t.Errorf("got %+v", a)
		}
	}
	metadata = domain(t, "<domain><name>theirs</name><devices><disk device='cdrom'><target dev='sda' bus='sata'/></disk></devices></domain>").Metadata()
	if metadata != (Metadata{}) {
		t.Errorf("a domain of others with an empty drive: %+v", metadata)
	}
}

func TestJournal(t *testing.T) {
	j := Journal{
		Name: "virtclaim-0123456789abcdef", UUID: "2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0",
		Note: Note{
			Owner: "a & b", Pool: "ssd", Volume: "web<1>", Prefix: "web", Generation: "g",
		},
	}
	chain := overlay()
	j.Copy = &chain
	text, err := BuildJournal(j)
	if err != nil {
		t.Fatal(err)
	}
	note, ok, err := ParseJournal(text)
	if err != nil || !ok || !reflect.DeepEqual(note, j.Note) {
		t.Errorf("read back %+v, %t, %v", note, ok, err)
	}
	d := domain(t, text)
	attached, metadata := d.Attached(), d.Metadata()
	if err != nil || metadata != (Metadata{}) || len(attached) != 1 || attached[0].Target != CopyTarget || len(attached[0].Volume.Images) != 2 {
		t.Errorf("a journal that copies has %+v, %+v, %v", attached, metadata, err)
	}
	if _, ok, err := ParseJournal(build(t, running())); ok || err != nil {
		t.Errorf("a machine is taken for a journal: %v", err)
	}
	if _, ok, err := ParseJournal("<domain><name>x</name></domain>"); ok || err != nil {
		t.Errorf("a domain of others is taken for a journal: %v", err)
	}
}

// A tentative disk, whose use has not been checked yet, is visible to other machines, but not to the machine's own next update.
func TestTentative_DiskIsSeenByOthersOnly(t *testing.T) {
	m := machines()["many-disks"]
	text, err := Build(m.WithTentative([]string{"c-lib"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	is, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if taken := ChangedUses(is.WithoutTentative(), m); !slices.Equal(taken, []string{"c-lib"}) {
		t.Errorf("the next update asks for %v", taken)
	}
	attached := domain(t, text).Attached()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attached {
		if len(a.Volume.Images) == 0 || len(a.Volume.Images[0].Hosts) == 0 {
			t.Errorf("others see %+v", a)
		}
	}
}

// An imported unmanaged domain keeps its running disks: a volume of a pool may be the file that is configured.
func TestPlug_DiskInPoolIsNotUnplugged(t *testing.T) {
	live := `<domain type='qemu'><name>theirs</name><memory unit='KiB'>1024</memory><devices><disk type='volume' device='disk'>` +
		`<driver name='qemu' type='qcow2'/><source pool='ssd' volume='data'/><target dev='vda' bus='virtio'/></disk></devices>` +
		`<os><kernel>/k</kernel></os></domain>`
	want := Machine{Disks: map[string]Disk{"vda": {Volume: local("data", ""), Device: Fixed, Bus: "virtio"}}}
	for _, c := range []struct {
		want Machine
		lost []string
	}{{want, nil}, {Machine{}, []string{"vda"}}} {
		if lost := domain(t, live).DisksToDetach(c.want); !slices.Equal(lost, c.lost) {
			t.Errorf("it loses %v", lost)
		}
	}
}

// Only a disk with the configured volume is resized. A disk that is booted from keeps its volume until the next start, so the
// configured size may be that of another volume.
func TestDisksToGrow_OnlyAttached(t *testing.T) {
	live := machines()["direct-boot"]
	for name, c := range map[string]struct {
		name string
		want map[string]int64
	}{
		"the same":     {"iqn.2026-01.io.example:disks/1", map[string]int64{"vda": 1 << 31}},
		"another unit": {"iqn.2026-01.io.example:disks/2", map[string]int64{}},
	} {
		want := iscsi(volume.WriteExclusive, true)
		want.Capacity, want.Images[0].Name = ptr(int64(1<<31)), c.name
		got := domain(t, build(t, live)).DisksToGrow(Machine{Disks: map[string]Disk{"root": {Volume: want, Device: Fixed, Bus: "virtio"}}})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An unmanaged floppy drive is writable; libvirt changes that only together with the drive.
func TestDrive_NoMediumInWritableDrive(t *testing.T) {
	want := Machine{Disks: map[string]Disk{"fda": {Volume: seed("floppy", "g1"), Device: Floppy, Bus: "fdc"}}}
	for more, inserted := range map[string][]string{"": nil, "<readonly/>": {"fda"}} {
		live := "<domain><devices><disk type='file' device='floppy'><target dev='fda' bus='fdc'/>" + more + "</disk></devices></domain>"
		got := domain(t, live).MediaToInsert(want)
		if diff := cmp.Diff(inserted, got); diff != "" {
			t.Errorf("with %q (-want +got):\n%s", more, diff)
		}
	}
}

func TestCompare_BalloonTargetIsNotPending(t *testing.T) {
	for name, c := range map[string]struct {
		live, liveMax, want, wantMax uint
		same                         bool
	}{
		"as wanted":                 {2 << 20, 8 << 20, 2 << 20, 8 << 20, true},
		"it has all":                {8 << 20, 8 << 20, 2 << 20, 8 << 20, true},
		"it has too little":         {1 << 20, 8 << 20, 2 << 20, 8 << 20, false},
		"it has all of another one": {4 << 20, 4 << 20, 2 << 20, 8 << 20, false},
		"no maximum":                {2 << 20, 2 << 20, 1 << 20, 0, false},
	} {
		live, want := Machine{Memory: c.live, MaxMemory: c.liveMax}, Machine{Memory: c.want, MaxMemory: c.wantMax}
		if got := memory.same(live, want); got != c.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}
