package domainxml

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var update = flag.Bool("update", false, "regenerate the golden files")

func ptr[T any](v T) *T { return &v }

// iscsi returns a volume as a volume binding provides it.
func iscsi(mode volume.AccessMode, auth bool) volume.Volume {
	i := volume.Image{
		Type: "network", Format: "raw", Protocol: "iscsi", Name: "iqn.2026-01.io.example:disks/1",
		Servers:    []volume.Server{{Host: "storage.example", Port: ptr(int64(3260))}},
		AccessMode: mode, Hosts: []string{"node-a", "node-b"}, Binding: "9d3f0c1b-6b0e-5d0c-8f5e-2f6d3c1b7a90",
	}
	if auth {
		i.Initiator = "iqn.2026-01.io.example:node"
		i.Auth = &volume.Auth{Type: "iscsi", Username: "guest", SecretUUID: "5f0c6f1e-58f5-5c80-9b57-0d3a2f6f8a11"}
	}
	return volume.Volume{Capacity: ptr(int64(1 << 30)), Images: []volume.Image{i}}
}

func overlay() volume.Volume {
	top := volume.Image{
		Type: "file", Format: "qcow2", Name: "/pools/ssd/web.qcow2",
		AccessMode: volume.WriteExclusive, Hosts: []string{"node-a"}, Generation: "f00d",
	}
	v := iscsi(volume.ReadShared, true)
	v.CopyOnRead = true
	v.Images = append([]volume.Image{top}, v.Images...)
	return v
}

// anyTarget accepts the target that a disk without a configured one has been given.
var anyTarget = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Target" }, cmp.Comparer(func(a, b string) bool {
	return a == b || a == "" || b == ""
}))

func machines() map[string]Machine {
	return map[string]Machine{
		"smallest": {Name: "smallest", VCPUs: 1, Memory: 131072, DomainType: "kvm", Disks: map[string]Disk{}},
		"direct-boot": {
			Name: "direct-boot", UUID: "2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0", VCPUs: 2, Memory: 262144,
			Type: "pc", Arch: "x86_64", DomainType: "qemu",
			Boot:     &Boot{Kernel: "/boot/vmlinux", Initrd: "/boot/initrd", Cmdline: "console=ttyS0 a=<b>"},
			Serial:   &Serial{LogFile: "/var/log/guest.log"},
			Disks:    map[string]Disk{"root": {Volume: iscsi(volume.WriteExclusive, true), Device: Fixed, Bus: "virtio"}},
			Metadata: Metadata{Owner: "prod & co", Phase: Creating},
		},
		"many-disks": {
			Name: "many-disks", VCPUs: 4, Memory: 1048576, Type: "q35", Arch: "x86_64", DomainType: "kvm",
			Disks: map[string]Disk{
				"a-data": {Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "sata"},
				"b-root": {Volume: overlay(), Device: Fixed, Bus: "virtio", BootOrder: 1},
				"c-lib":  {Volume: iscsi(volume.ReadShared, false), Device: Fixed, Bus: "scsi", BootOrder: 2},
				"d-more": {Volume: iscsi(volume.ReadShared, true), Device: Fixed, Bus: "scsi"},
			},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"processors": {
			Name: "processors", VCPUs: 2, MaxVCPUs: 8, Memory: 131072, MaxMemory: 262144, DomainType: "kvm", Disks: map[string]Disk{},
			CPU:      CPU{Mode: CustomCPU, Model: "Haswell", Topology: &Topology{Sockets: 2, Dies: 1, Cores: 2, Threads: 2}},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"settings": {
			Name: "settings", VCPUs: 2, Memory: 131072, DomainType: "kvm", Disks: map[string]Disk{}, HyperV: true,
			CPU: CPU{
				Mode: "host-model", Features: map[string]string{"vmx": "disable", "aes": "require"}, Pins: map[uint]string{0: "2-3", 1: "4"}, EmulatorPin: "0", Shares: 2048,
				Period: 50000, Quota: 25000,
			},
			Clock: &Clock{
				Offset: "localtime", Timers: map[string]Timer{"hpet": {Present: "no"}, "rtc": {TickPolicy: "catchup"}, "hypervclock": {}},
			},
			MemoryBacking: MemoryBacking{HugePages: true, PageSize: 2048, Shared: true}, OnReboot: "destroy", OnCrash: "preserve",
			FWCfg:    map[string]string{"opt/com.coreos/config": "/pool/web.ign", "opt/b": "/pool/b"},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"host-model": {
			Name: "host-model", VCPUs: 2, Memory: 131072, DomainType: "kvm", Disks: map[string]Disk{},
			CPU:      CPU{Mode: "host-model"},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"uefi": {
			Name: "uefi", VCPUs: 1, Memory: 131072, Type: "q35", DomainType: "kvm", Disks: map[string]Disk{},
			Firmware: &Firmware{Type: UEFI}, TPM: &TPM{Version: "2.0"}, Metadata: Metadata{Phase: Ready},
		},
		"devices": {
			Name: "devices", VCPUs: 1, Memory: 131072, Type: "pc", DomainType: "kvm", Disks: map[string]Disk{},
			Serial: &Serial{}, Console: &Console{LogFile: "/var/log/hvc0.log"}, Graphics: &Graphics{Type: VNC, Listen: "0.0.0.0", Port: 5901},
			Video: &Video{Model: "vga", VRAM: 16384, Heads: 1}, RNG: &RNG{Source: "/dev/hwrng"},
			Watchdog: &Watchdog{Model: "i6300esb", Action: "poweroff"},
			Filesystems: map[string]Filesystem{
				"a": {Source: "/srv/a", Target: "tag", Driver: VirtioFS}, "b": {Source: "/srv/b", Target: "b", Driver: NineP, ReadOnly: true},
			},
			DevicesXML: "\n<sound model='ac97'/> <input type=\"keyboard\" bus=\"virtio\"/>\n",
			Metadata:   Metadata{Phase: Ready},
		},
		"spice": {
			Name: "spice", VCPUs: 1, Memory: 131072, Type: "pc", DomainType: "kvm", Disks: map[string]Disk{},
			Graphics: &Graphics{Type: Spice, Listen: "127.0.0.1"}, Video: &Video{Model: "qxl"}, Metadata: Metadata{Phase: Ready},
		},
		"secure-boot": {
			Name: "secure-boot", VCPUs: 1, Memory: 131072, Type: "q35", DomainType: "kvm", Disks: map[string]Disk{},
			Firmware: &Firmware{Type: UEFI, SecureBoot: true}, TPM: &TPM{Version: "1.2", Model: "tpm-tis"}, Metadata: Metadata{Phase: Ready},
		},
		"cdrom-pc": {
			Name: "cdrom-pc", VCPUs: 1, Memory: 131072, Type: "pc", DomainType: "kvm",
			Disks: map[string]Disk{
				"a-seed":  {Volume: seed("seed", "g1"), Device: CDROM, Bus: "ide"},
				"b-root":  {Volume: overlay(), Device: Fixed, Bus: "virtio"},
				"c-alone": {Volume: iscsi(volume.WriteExclusive, true), Device: CDROM, Bus: "sata", BootOrder: 1},
				"d-empty": {Device: CDROM, Bus: "scsi"},
			},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"cdrom-q35": {
			Name: "cdrom-q35", VCPUs: 1, Memory: 131072, Type: "q35", DomainType: "kvm",
			Disks: map[string]Disk{
				"seed": {Volume: seed("seed", "g1"), Device: CDROM, Bus: "sata"},
				"many": {Volume: iscsi(volume.WriteShared, false), Device: CDROM, Bus: "sata"},
			},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"interfaces": {
			Name: "interfaces", VCPUs: 1, Memory: 131072, DomainType: "kvm", Disks: map[string]Disk{}, Interfaces: everyInterface(), GuestAgent: true,
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"devices-pc": {
			Name: "devices-pc", VCPUs: 1, Memory: 131072, Type: "pc", DomainType: "kvm",
			Disks: map[string]Disk{
				"a-floppy": {Volume: seed("floppy", "g1"), Device: Floppy, Bus: "fdc"},
				"b-lun":    {Volume: iscsi(volume.WriteExclusive, true), Device: LUN, Bus: "scsi"},
				"c-stick":  {Volume: local("stick", "g2"), Device: Fixed, Bus: "usb", Tuning: Tuning{Serial: "stick"}},
				"d-empty":  {Device: CDROM, Bus: "sata"},
				"e-none":   {Device: Floppy, Bus: "fdc"},
			},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
		"tuned-disks": {
			Name: "tuned-disks", VCPUs: 1, Memory: 131072, Type: "q35", DomainType: "kvm",
			Disks: map[string]Disk{
				"a-all": {
					Volume: iscsi(volume.WriteExclusive, true), Device: Fixed, Bus: "virtio", Target: "vdc", ReadOnly: true, Tuning: Tuning{
						Serial: "WD-1+2", Cache: "directsync", IO: "native", Discard: "ignore", ErrorPolicy: "report", IOThread: 3,
						LogicalBlockSize: 512, PhysicalBlockSize: 4096,
					},
				},
				// The configured values equal the defaults.
				"b-same": {
					Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio", Target: "vda",
					Tuning: Tuning{Cache: "none", Discard: "unmap", ErrorPolicy: "stop", LogicalBlockSize: 4096, PhysicalBlockSize: 4096},
				},
				"c-default": {Volume: iscsi(volume.ReadShared, false), Device: Fixed, Bus: "virtio", Tuning: Tuning{Cache: "default", LogicalBlockSize: 4096}},
				"d-shared":  {Volume: iscsi(volume.WriteShared, false), Device: Fixed, Bus: "virtio", ReadOnly: true},
				"e-limited": {
					Volume: local("limited", "g1"), Device: Fixed, Bus: "virtio", Tuning: Tuning{
						DetectZeroes: "on", Queues: 4,
						IOTune: IOTune{0, 2, 3, 0, 5, 6, 0, 8, 9, 0, 11, 12, 0, 14, 15, 0, 17, 18, 19},
					},
				},
				"f-ssd": {
					Volume: local("ssd", "g1"), Device: Fixed, Bus: "scsi",
					Tuning: Tuning{WWN: "5000c50015ea71ab", Vendor: "SEAGATE", Product: "ST3146707LC", RotationRate: 1, IOTune: IOTune{0: 1, 3: 4, 6: 7, 9: 10, 12: 13, 15: 16}},
				},
			},
			Metadata: Metadata{Owner: "prod", Phase: Ready},
		},
	}
}

func TestBuild_Golden(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			got, err := Build(m)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".xml")
			if *update {
				if err := os.WriteFile(golden, []byte(got+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSuffix(string(want), "\n"), got); diff != "" {
				t.Errorf("the XML differs from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestParse_ReadsBackBuild(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			text, err := Build(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got, anyTarget); diff != "" {
				t.Errorf("read back differs (-built +read):\n%s", diff)
			}
		})
	}
}

func TestUpdate_SameIsNoChange(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			text, err := Build(m)
			if err != nil {
				t.Fatal(err)
			}
			again, err := domain(t, text).Update(m)
			if err != nil {
				t.Fatal(err)
			}
			if pending, err := domain(t, text).Pending(m); len(pending) > 0 || err != nil || again != text {
				t.Errorf("pending are %v, %v, difference:\n%s", pending, err, cmp.Diff(text, again))
			}
		})
	}
}

// stored returns what libvirt 9.0 stores for a machine with two disks, shortened, with elements that other tools have added.
func stored(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "stored.xml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUpdate_KeepsUnsupportedElements(t *testing.T) {
	m, err := Parse(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	m.VCPUs = 3
	m.Disks["a-new"] = Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio"}
	text, err := domain(t, stored(t)).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := domain(t, stored(t)).Pending(m); len(pending) == 0 || err != nil {
		t.Errorf("a new disk and another vCPU are no change: %v", err)
	}
	for _, kept := range []string{
		`<app:note xmlns:app="https://example.org/app">keep me</app:note>`,
		`slot="0x07"`, `slot="0x08"`, `<target dev="vda" bus="virtio"`, `<target dev="vdb" bus="virtio"`,
		`<mac address="52:54:00:11:22:33"`, `<total_iops_sec>500`, `device="cdrom"`, `type="cirrus"`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), kept) {
			t.Errorf("%s is gone from:\n%s", kept, text)
		}
	}
	if !strings.Contains(text, `<alias name="ua-disk-a-new"`) || !strings.Contains(text, `dev="vdc"`) {
		t.Errorf("the new disk is not at the first free target:\n%s", text)
	}
}

func TestUpdate_VolumeKeepsDevice(t *testing.T) {
	m, err := Parse(stored(t))
	if err != nil {
		t.Fatal(err)
	}
	was := m.Disks["root"]
	m.Disks["root"] = Disk{Volume: iscsi(volume.ReadShared, true), Device: Fixed, Bus: "virtio", BootOrder: was.BootOrder, Tuning: was.Tuning}
	text, err := domain(t, stored(t)).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := domain(t, stored(t)).Pending(m); len(pending) == 0 || err != nil {
		t.Errorf("another volume is no change: %v", err)
	}
	after, err := Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	root := after.Devices.Disks[0]
	if root.Target.Dev != "vda" || root.Address == nil || *root.Address.PCI.Slot != 7 || root.IOTune == nil {
		t.Errorf("the device lost its place or its tuning: %+v", root)
	}
	if root.ReadOnly == nil || root.Shareable == nil || root.Source.Network == nil {
		t.Errorf("the device does not have the new volume: %+v", root)
	}
}

func TestUpdate_StorageHostsAreNoGuestChange(t *testing.T) {
	m := machines()["direct-boot"]
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	d := m.Disks["root"]
	d.Volume.Images[0].Hosts = []string{"node-a", "node-b", "node-c"}
	again, err := domain(t, text).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := domain(t, text).Pending(m); len(pending) > 0 || err != nil {
		t.Error("another host in the binding counts as a change of the guest's devices")
	}
	if got, err := Parse(again); err != nil || len(got.Disks["root"].Volume.Images[0].Hosts) != 3 {
		t.Errorf("the new host was not noted: %+v, %v", got.Disks["root"], err)
	}
}

func TestParse_DeviceOverridesMetadata(t *testing.T) {
	text, err := Build(machines()["direct-boot"])
	if err != nil {
		t.Fatal(err)
	}
	byHand := strings.Replace(text, "</source>", "</source><readonly></readonly>", 1)
	m, err := Parse(byHand)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Disks["root"].Volume.Images[0].AccessMode; got != volume.ReadShared {
		t.Errorf("a disk that was made read-only by hand is read as %s", got)
	}
}

func TestTarget_NamesAfterZ(t *testing.T) {
	for n, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "ab", 701: "zz", 702: "aaa"} {
		if got := letters(n); got != want {
			t.Errorf("letters(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestSameMachineType_ResolvesAliases(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"pc", "pc-i440fx-7.2", true},
		{"pc-q35-7.2", "q35", true},
		{"q35", "q35", true},
		{"pc", "pc-q35-7.2", false},
		{"q35", "pc-i440fx-7.2", false},
		{"pc-q35-7.2", "pc-q35-8.0", false},
	} {
		if got := SameMachineType(c.a, c.b); got != c.want {
			t.Errorf("SameMachineType(%s, %s) = %v", c.a, c.b, got)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	for _, m := range machines() {
		text, err := Build(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		again, err := domain(t, text).Update(m)
		if err != nil {
			return
		}
		if _, err := Parse(again); err != nil {
			t.Errorf("can't be read after an update: %v", err)
		}
	})
}

// Some hosts have aliases that are no prefix of the type they resolve to, such as Ubuntu's ubuntu.
func TestParse_KeepsRequestedMachineAlias(t *testing.T) {
	const full = "pc-i440fx-jammy"
	m := small()
	m.Type, m.Metadata.Phase = "ubuntu", Creating
	made := strings.Replace(build(t, m), `machine="ubuntu"`, `machine="`+full+`"`, 1)
	m.Metadata.Phase = Ready
	ready, err := domain(t, made).Update(m)
	if err != nil || !strings.Contains(ready, `machine="`+full+`"`) {
		t.Fatalf("%v: %s", err, ready)
	}
	for text, want := range map[string]string{
		made: "ubuntu", ready: "ubuntu", strings.Replace(ready, `machine="`+full, `machine="pc-q35-jammy`, 1): "pc-q35-jammy",
	} {
		if is, err := Parse(text); err != nil || is.Type != want {
			t.Errorf("it is of type %q, not %q, %v", is.Type, want, err)
		}
	}
	if stored := domain(t, ready).Type(); stored != full {
		t.Errorf("stored is %q, %v", stored, err)
	}
}
