package domainxml

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// seed returns a medium in a pool, as a disk resource provides it.
func seed(name, generation string) volume.Volume {
	return volume.Volume{Capacity: ptr(int64(1 << 20)), Images: []volume.Image{{
		Type: "file", Format: "raw", Name: "/pools/ssd/" + name, AccessMode: volume.ReadShared,
		Hosts: []string{"node-a"}, Generation: generation,
	}}}
}

// withSeed returns a machine with a drive on a bus without hot-plug.
func withSeed(medium volume.Volume) Machine {
	m := running()
	m.Disks["seed"] = Disk{Volume: medium, Device: CDROM, Bus: "ide"}
	return m
}

// bootSeed is withSeed with the drive as the boot device.
func bootSeed(medium volume.Volume) Machine {
	m := withSeed(medium)
	m.Disks["seed"] = Disk{Volume: medium, Device: CDROM, Bus: "ide", BootOrder: 1}
	return m
}

// bootRoot is withSeed that boots from a disk, and has no other disk that could be unplugged.
func bootRoot(medium volume.Volume) Machine {
	m := withSeed(medium)
	m.Boot = nil
	m.Disks["data"] = Disk{Volume: local("data", "g1"), Device: Fixed, Bus: "virtio", BootOrder: 1}
	return m
}

func TestDrive_MediumIsEjectedAndInserted(t *testing.T) {
	full, empty := build(t, withSeed(seed("seed", "g1"))), build(t, withSeed(volume.Volume{}))
	// The drive as libvirt 9.0 shows it after an eject.
	emptied := strings.Replace(full, `<source file="/pools/ssd/seed">`, `<source index="2">`, 1)
	alone := seed("seed", "g1")
	alone.Images[0].AccessMode = volume.WriteExclusive
	for name, c := range map[string]struct {
		live           string
		want           Machine
		loses, inserts []string
		takes          bool
		pending        string
	}{
		"the same": {live: full, want: withSeed(seed("seed", "g1"))},
		"another file": {
			live: full, want: withSeed(seed("new", "g2")), loses: []string{"seed"}, takes: true, pending: "disk seed",
		},
		"another generation under the same name": {
			live: full, want: withSeed(seed("seed", "g2")), loses: []string{"seed"}, takes: true, pending: "disk seed",
		},
		"another access mode": {live: full, want: withSeed(alone), takes: true},
		"from local to network": {
			live: full, want: withSeed(iscsi(volume.ReadShared, true)), loses: []string{"seed"}, takes: true, pending: "disk seed",
		},
		"another bus": {
			live: full, want: func() Machine {
				m := withSeed(seed("seed", "g1"))
				m.Disks["seed"] = Disk{Volume: seed("seed", "g1"), Device: CDROM, Bus: "scsi"}
				return m
			}(), pending: "disk seed",
		},
		"media before disks": {
			live: full, want: func() Machine {
				m := withSeed(seed("new", "g2"))
				delete(m.Disks, "data")
				return m
			}(), loses: []string{"seed", "data"}, takes: true, pending: "disk data, disk seed",
		},
		"no drive any more": {live: full, want: running(), loses: []string{"seed"}, pending: "disk seed"},
		"a drive more":      {live: build(t, running()), want: withSeed(seed("seed", "g1")), takes: true, pending: "disk seed"},
		"a disk instead": {
			live: full, want: func() Machine {
				m := running()
				m.Disks["seed"] = Disk{Volume: seed("seed", "g1"), Device: Fixed, Bus: "virtio"}
				return m
			}(), loses: []string{"seed"}, takes: true, pending: "disk seed",
		},
		"into an empty drive": {
			live: empty, want: withSeed(seed("seed", "g1")), inserts: []string{"seed"}, takes: true, pending: "disk seed",
		},
		"into one that was emptied": {
			live: emptied, want: withSeed(seed("seed", "g1")), inserts: []string{"seed"}, takes: true, pending: "disk seed",
		},
		"what it boots from": {
			live: build(t, bootSeed(seed("seed", "g1"))), want: bootSeed(seed("new", "g2")), takes: true, pending: "disk seed",
		},
		"what it boots from less": {live: build(t, bootSeed(seed("seed", "g1"))), want: running(), pending: "disk seed"},
		"what a disk beside it boots": {
			live: build(t, bootRoot(seed("seed", "g1"))), want: bootRoot(seed("new", "g2")), loses: []string{"seed"}, takes: true,
			pending: "disk seed",
		},
		"an empty drive, too": {live: empty, want: withSeed(volume.Volume{})},
		"an empty drive instead": {
			live: full, want: withSeed(volume.Volume{}), loses: []string{"seed"},
		},
		"an empty drive less": {live: emptied, want: running(), pending: "disk seed"},
	} {
		t.Run(name, func(t *testing.T) {
			loses := domain(t, c.live).DisksToDetach(c.want)
			if !slices.Equal(loses, c.loses) {
				t.Errorf("it loses %v; want %v", loses, c.loses)
			}
			inserts := domain(t, c.live).MediaToInsert(c.want)
			if !slices.Equal(inserts, c.inserts) {
				t.Errorf("inserted are %v; want %v", inserts, c.inserts)
			}
			if gains := domain(t, c.live).DisksToAttach(c.want); len(gains) != 0 {
				t.Errorf("it gains %v", gains)
			}
			was, err := Parse(c.live)
			if takes := ChangedUses(was, c.want); err != nil || slices.Contains(takes, "seed") != c.takes {
				t.Errorf("it takes %v, %v", takes, err)
			}
			if pending, err := domain(t, c.live).Pending(c.want); err != nil || strings.Join(pending, ", ") != c.pending {
				t.Errorf("pending is %q, %v; want %q", pending, err, c.pending)
			}
		})
	}
}

func TestDrive_ChangesOnlyMedium(t *testing.T) {
	live := strings.Replace(build(t, withSeed(seed("seed", "g1"))), `<alias name="ua-disk-seed">`,
		`<shareable></shareable><boot order="3"></boot><alias name="ua-disk-seed">`, 1)
	empty, ok, err := domain(t, live).Drive("seed", volume.Volume{})
	if err != nil || !ok || strings.Contains(empty, "source") {
		t.Fatalf("emptied, it is %s, %v, %v", empty, ok, err)
	}
	full, ok, err := domain(t, live).Drive("seed", iscsi(volume.WriteShared, true))
	if err != nil || !ok || !strings.Contains(full, "iqn.2026-01.io.example:disks/1") {
		t.Fatalf("with a medium, it is %s, %v, %v", full, ok, err)
	}
	for _, kept := range []string{`device="cdrom"`, `<target dev="hda" bus="ide">`, "<readonly>", "<shareable>", `<boot order="3">`, "ua-disk-seed", `error_policy="stop"`} {
		for _, drive := range []string{empty, full} {
			if !strings.Contains(drive, kept) || strings.Contains(drive, "cache=") {
				t.Errorf("%s is not kept, or more is new in %s", kept, drive)
			}
		}
	}
	want := Machine{Disks: map[string]Disk{"seed": {Volume: iscsi(volume.ReadShared, false), Device: CDROM, Bus: "ide"}}}
	if grows := domain(t, live).DisksToGrow(want); len(grows) != 0 {
		t.Errorf("the drive is a disk that could grow, %v: %v", grows, err)
	}
	for _, key := range []string{"data", "nothing"} {
		if _, ok, err := domain(t, live).Drive(key, volume.Volume{}); ok || err != nil {
			t.Errorf("%s is a drive: %v", key, err)
		}
	}
	if _, ok, err := domain(t, build(t, withSeed(volume.Volume{}))).Device("seed"); ok || err != nil {
		t.Errorf("an empty drive has something to be taken away: %v", err)
	}
}

// In a drive, a medium that is named by pool and volume differs from the one named by its file: it is changed once, and the file is
// kept.
func TestDrive_MediumInPoolIsChanged(t *testing.T) {
	live := `<domain type='qemu'><name>theirs</name><memory unit='KiB'>1024</memory><devices><disk type='volume' device='cdrom'>` +
		`<driver name='qemu' type='raw'/><source pool='ssd' volume='seed'/><target dev='hda' bus='ide'/></disk></devices></domain>`
	want := Machine{Disks: map[string]Disk{"hda": {Volume: seed("seed", ""), Device: CDROM, Bus: "ide"}}}
	if lost := domain(t, live).DisksToDetach(want); !slices.Equal(lost, []string{"hda"}) {
		t.Errorf("it loses %v", lost)
	}
	drive, _, err := domain(t, live).Drive("hda", want.Disks["hda"].Volume)
	if err != nil || strings.Contains(drive, "pool=") || !strings.Contains(drive, "/pools/ssd/seed") {
		t.Errorf("the drive is given %s, %v", drive, err)
	}
}

// libvirt refuses copy_on_read for a drive, but the configured value is still read back.
func TestDrive_NoCopyOnRead(t *testing.T) {
	want := withSeed(overlay())
	text := build(t, want)
	if strings.Contains(text, "copy_on_read") {
		t.Errorf("it copies what it reads: %s", text)
	}
	is, err := Parse(text)
	if diff := cmp.Diff(want.Disks["seed"], is.Disks["seed"], anyTarget); err != nil || diff != "" {
		t.Errorf("%v, difference (-want +got):\n%s", err, diff)
	}
	if pending, err := domain(t, text).Pending(want); err != nil || len(pending) != 0 {
		t.Errorf("pending are %v, %v", pending, err)
	}
}

// A tentative medium is not reported as the drive's, whatever the guest sees there: the next apply has to check its use again.
func TestCompare_TentativeMediumIsIgnored(t *testing.T) {
	is, err := Parse(build(t, withSeed(seed("seed", "g1")).WithTentative([]string{"seed"}, nil)))
	is = is.WithoutTentative()
	if err == nil {
		err = is.Compare(domain(t, build(t, withSeed(seed("seed", "g1")))))
	}
	if got := is.Disks["seed"].Volume.Images; err != nil || len(got) != 0 {
		t.Errorf("it has %+v, %v", got, err)
	}
}

func TestDrive_ReadOnlyAndNotBootableByDefault(t *testing.T) {
	m := withSeed(iscsi(volume.WriteExclusive, false))
	m.Boot = nil
	m.Disks = map[string]Disk{"a": m.Disks["seed"], "b": m.Disks["data"]}
	attached := domain(t, build(t, m)).Attached()
	if len(attached) != 2 {
		t.Fatalf("attached are %+v", attached)
	}
	drive, disk := attached[0], attached[1]
	if drive.Boots || drive.Pluggable || !drive.Drive || drive.Volume.Images[0].AccessMode != volume.WriteExclusive {
		t.Errorf("the drive is %+v", drive)
	}
	if !disk.Boots || disk.Drive {
		t.Errorf("the disk is %+v", disk)
	}
	byHand := domain(t, `<domain><devices>
		<disk type="file" device="cdrom"><source file="/a.iso"/><target dev="hda" bus="ide"/></disk>
		<disk type="block" device="cdrom"><source dev=""/><target dev="hdb" bus="ide"/></disk></devices></domain>`).Attached()
	if len(byHand) != 1 || byHand[0].Volume.Images[0].AccessMode != volume.ReadShared || byHand[0].Key != "hda" {
		t.Errorf("by hand it is %+v", byHand)
	}
}

// Unmanaged drives: one with a medium is a disk as long as virtclaim has changed nothing, and drives that are not configured are kept.
func TestDrive_UnmanagedDrives(t *testing.T) {
	const tools = `<disk type='file' device='cdrom'><source file='/images/tools.iso'/><target dev='sda' bus='sata'/><readonly/></disk>`
	ours := strings.Replace(stored(t), "<devices>", "<devices>"+tools, 1)
	if is, err := Parse(ours); err != nil || len(is.Disks) == 0 || is.Disks["sda"].Device == CDROM {
		t.Errorf("read of a machine of ours that was given a drive are %+v, %v", is.Disks, err)
	}
	text := strings.Replace(ours, ` phase="ready"`, "", 1)
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, empty := m.Disks["hda"]; empty || m.Disks["sda"].Device != CDROM || m.Disks["sda"].Volume.Images[0].Name != "/images/tools.iso" {
		t.Errorf("read are %+v", m.Disks)
	}
	tray := m.Disks["sda"]
	delete(m.Disks, "sda")
	m.Metadata.Phase, m.Video = Ready, nil
	without, err := domain(t, text).Update(m)
	if err != nil || !strings.Contains(without, "tools.iso") || !strings.Contains(without, `dev="hda"`) {
		t.Errorf("without its medium it is %s, %v", without, err)
	}
	is, err := Parse(without)
	if err == nil {
		err = is.Compare(domain(t, text))
	}
	if _, has := is.Disks["sda"]; has || err != nil {
		t.Errorf("what is left alone is read as a disk: %+v, %v", is.Disks, err)
	}
	if lost := domain(t, text).DisksToDetach(m); len(lost) != 0 {
		t.Errorf("it loses %v, %v", lost, err)
	}
	wanted := m
	wanted.Disks = map[string]Disk{"sda": tray}
	maps.Copy(wanted.Disks, m.Disks)
	for _, want := range []Machine{m, wanted} {
		// The running domain is marked ready after a disk was plugged in, without a record of the drive.
		for _, live := range []string{text, ours} {
			if pending, err := domain(t, live).Pending(want); err != nil || len(pending) != 0 {
				t.Errorf("pending are %v, %v", pending, err)
			}
		}
	}
	m.Disks["hda"] = Disk{Volume: seed("seed", ""), Device: CDROM, Bus: "ide"}
	with, err := domain(t, text).Update(m)
	if err != nil || strings.Count(with, `device="cdrom"`) != 2 || !strings.Contains(with, "/pools/ssd/seed") {
		t.Errorf("with a medium in the empty drive it is %s, %v", with, err)
	}
	m.Disks["hda"] = Disk{Device: CDROM, Bus: "ide"}
	emptied, err := domain(t, with).Update(m)
	if is, e := Parse(emptied); err != nil || e != nil || is.Disks["hda"].Device != CDROM || len(is.Disks["hda"].Volume.Images) != 0 {
		t.Errorf("emptied, the drive is %+v, %v, %v", is.Disks["hda"], err, e)
	}
	m.Disks["sda"] = Disk{Volume: local("a", ""), Device: Fixed, Bus: "virtio"}
	if instead, err := domain(t, text).Update(m); err != nil || strings.Contains(instead, "tools.iso") || !strings.Contains(instead, "ua-disk-sda") {
		t.Errorf("with a disk instead it is %s, %v", instead, err)
	}
}

// All kinds of devices of an unmanaged machine are read.
func TestDevices_UnmanagedAreRead(t *testing.T) {
	const byHand = `<domain type='qemu'><name>theirs</name><memory unit='KiB'>1024</memory><devices>
		<disk type='file' device='floppy'><driver name='qemu' type='raw'/><source file='/a.img'/><target dev='fda' bus='fdc'/></disk>
		<disk type='file' device='floppy'><driver name='qemu' type='raw'/><target dev='fdb' bus='fdc'/></disk>
		<disk type='block' device='lun'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/sdx'/><target dev='sda' bus='scsi'/><boot order='1'/></disk>
		<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/b.img'/><target dev='sdb' bus='usb'/><serial>B</serial></disk>
		</devices></domain>`
	image := func(kind, name string) volume.Volume {
		return volume.Volume{Images: []volume.Image{{Type: kind, Format: "raw", Name: name, AccessMode: volume.WriteExclusive}}}
	}
	want := map[string]Disk{
		"fda": {Volume: image("file", "/a.img"), Device: Floppy, Bus: "fdc", Target: "fda"},
		"sda": {Volume: image("block", "/dev/sdx"), Device: LUN, Bus: "scsi", Target: "sda", BootOrder: 1, Tuning: Tuning{Cache: "none"}},
		"sdb": {Volume: image("file", "/b.img"), Device: Fixed, Bus: "usb", Target: "sdb", Tuning: Tuning{Serial: "B"}},
	}
	m, err := Parse(byHand)
	if diff := cmp.Diff(want, m.Disks); err != nil || diff != "" {
		t.Errorf("%v, difference (-want +got):\n%s", err, diff)
	}
	attached := domain(t, byHand).Attached()
	if err != nil || len(attached) != 3 {
		t.Fatalf("attached are %+v, %v", attached, err)
	}
	floppy, lun, stick := attached[0], attached[1], attached[2]
	if floppy.ReadOnly || !floppy.Drive || floppy.Pluggable || floppy.Boots {
		t.Errorf("the floppy is %+v", floppy)
	}
	if lun.ReadOnly || lun.Drive || !lun.Pluggable || !lun.Boots || stick.Boots || !stick.Pluggable {
		t.Errorf("the logical unit is %+v, the stick %+v", lun, stick)
	}
	// After adoption the floppy is defined as by virtclaim: its guest can't write to it.
	m.Metadata.Phase = Ready
	if pending, err := domain(t, byHand).Pending(m); err != nil || strings.Join(pending, ", ") != "disk fda" {
		t.Errorf("pending are %v, %v", pending, err)
	}
	// In a machine of virtclaim's, devices that were attached outside of Terraform are drift, and are removed.
	ours := strings.Replace(byHand, "<devices>", `<metadata><machine xmlns="`+Namespace+`" phase="ready"/></metadata><devices>`, 1)
	is, err := Parse(ours)
	delete(want, "fda")
	if diff := cmp.Diff(want, is.Disks); err != nil || diff != "" {
		t.Errorf("%v, difference (-want +got):\n%s", err, diff)
	}
	m.Disks = nil
	if lost := domain(t, ours).DisksToDetach(m); !slices.Equal(lost, []string{"sdb"}) {
		t.Errorf("it loses %v, %v", lost, err)
	}
}

func TestPlug_SupportedDevices(t *testing.T) {
	want := machines()["devices-pc"]
	bare := want
	bare.Disks = nil
	for controllers, plugged := range map[string]string{
		"": "",
		`<controller type="usb" index="0" model="none"/>`:                                                  "",
		`<controller type="usb" index="0" model="piix3-uhci"/>`:                                            "c-stick",
		`<controller type="scsi" index="0" model="virtio-scsi"/>`:                                          "b-lun",
		`<controller type="scsi" index="0" model="virtio-scsi"/><controller type="usb" model="nec-xhci"/>`: "b-lun c-stick",
	} {
		live := strings.Replace(build(t, bare), "<devices>", "<devices>"+controllers, 1)
		live = strings.Replace(live, "<devices></devices>", "<devices>"+controllers+"</devices>", 1)
		if gains := domain(t, live).DisksToAttach(want); strings.Join(gains, " ") != plugged {
			t.Errorf("with %s it gains %v; want %s", controllers, gains, plugged)
		}
	}
}
