package domainxml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// one returns a machine with only that disk.
func one(d Disk) Machine {
	m := running()
	m.Disks = map[string]Disk{"data": d}
	return m
}

func TestTuning_Defaults(t *testing.T) {
	file := seed("data", "g1")
	shared := file
	shared.Images = []volume.Image{file.Images[0]}
	shared.Images[0].AccessMode = volume.WriteShared
	device := volume.Volume{Images: []volume.Image{{Type: "block", Format: "raw", Name: "/dev/vg/data"}}}
	careful := Tuning{Cache: "none", Discard: "unmap", ErrorPolicy: "stop"}
	for name, c := range map[string]struct {
		disk Disk
		want Tuning
	}{
		"raw on the network":      {Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed}, careful},
		"raw device":              {Disk{Volume: device, Device: Fixed}, careful},
		"logical unit":            {Disk{Volume: device, Device: LUN}, careful},
		"raw file":                {Disk{Volume: file, Device: Fixed}, Tuning{ErrorPolicy: "stop"}},
		"overlay on the network":  {Disk{Volume: overlay(), Device: Fixed}, Tuning{ErrorPolicy: "stop"}},
		"file that others write":  {Disk{Volume: shared, Device: Fixed}, Tuning{Cache: "none", ErrorPolicy: "stop"}},
		"medium from the network": {Disk{Volume: iscsi(volume.ReadShared, false), Device: CDROM}, Tuning{ErrorPolicy: "stop"}},
		"empty drive":             {Disk{Device: CDROM}, Tuning{ErrorPolicy: "stop"}},
		"floppy drive":            {Disk{Device: Floppy}, Tuning{}},
	} {
		if diff := cmp.Diff(c.want, c.disk.Defaults()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Changes made outside of Terraform are read, also of settings that are not configured.
func TestTuning_ManualChangesAreRead(t *testing.T) {
	asked := Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio", Tuning: Tuning{Cache: "none"}}
	silent := Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio"}
	for _, c := range []struct {
		disk     Disk
		old, new string
		want     Tuning
	}{
		{silent, `cache="none"`, `cache="none"`, Tuning{}},
		{silent, `cache="none"`, `cache="unsafe"`, Tuning{Cache: "unsafe"}},
		{silent, `cache="none"`, ``, Tuning{Cache: "default"}},
		{asked, `cache="none"`, `cache="none"`, Tuning{Cache: "none"}},
		{asked, `cache="none"`, `cache="unsafe"`, Tuning{Cache: "unsafe"}},
		{asked, `cache="none"`, ``, Tuning{Cache: "default"}},
		{silent, `discard="unmap"`, `discard="ignore" io="threads"`, Tuning{Discard: "ignore", IO: "threads"}},
		{silent, `</target>`, `</target><iotune><total_iops_sec>9</total_iops_sec></iotune>`, Tuning{IOTune: IOTune{3: 9}}},
		{silent, `error_policy="stop"`, `error_policy="report"`, Tuning{ErrorPolicy: "report"}},
	} {
		text := build(t, one(c.disk))
		byHand := strings.Replace(text, c.old, c.new, 1)
		is, err := Parse(byHand)
		if diff := cmp.Diff(c.want, is.Disks["data"].Tuning); err != nil || diff != "" {
			t.Errorf("%s for %s: %v, difference (-want +got):\n%s", c.new, c.old, err, diff)
		}
		back, err := domain(t, byHand).Update(one(c.disk))
		if diff := cmp.Diff(text, back); err != nil || diff != "" {
			t.Errorf("%s for %s is not put right: %v\n%s", c.new, c.old, err, diff)
		}
	}
}

// No tuning of a device can change while it runs, and none of it is a reason to unplug the device.
func TestTuning_ChangesNeedRestart(t *testing.T) {
	plain := Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio"}
	for name, change := range map[string]func(d *Disk){
		"serial":              func(d *Disk) { d.Serial = "one" },
		"cache":               func(d *Disk) { d.Cache = "writethrough" },
		"io":                  func(d *Disk) { d.IO = "io_uring" },
		"discard":             func(d *Disk) { d.Discard = "ignore" },
		"error policy":        func(d *Disk) { d.ErrorPolicy = "enospace" },
		"I/O thread":          func(d *Disk) { d.IOThread = 1 },
		"logical block size":  func(d *Disk) { d.LogicalBlockSize = 4096 },
		"physical block size": func(d *Disk) { d.PhysicalBlockSize = 4096 },
		"zeroes":              func(d *Disk) { d.DetectZeroes = "on" },
		"queues":              func(d *Disk) { d.Queues = 4 },
		"name":                func(d *Disk) { d.WWN = "5000c50015ea71ab" },
		"vendor":              func(d *Disk) { d.Vendor = "SEAGATE" },
		"product":             func(d *Disk) { d.Product = "ST3146707LC" },
		"rotation":            func(d *Disk) { d.RotationRate = 1 },
		"read-only":           func(d *Disk) { d.ReadOnly = true },
		"target":              func(d *Disk) { d.Target = "vdq" },
	} {
		t.Run(name, func(t *testing.T) {
			other := plain
			change(&other)
			for _, c := range [][2]Disk{{plain, other}, {other, plain}} {
				live := build(t, one(c[0]))
				if lost := domain(t, live).DisksToDetach(one(c[1])); len(lost) > 0 {
					t.Errorf("it loses %v", lost)
				}
				if pending, err := domain(t, live).Pending(one(c[1])); (len(pending) == 0) != (name == "target" && c[1].Target == "") || err != nil {
					t.Errorf("pending are %v, %v", pending, err)
				}
				text, err := domain(t, live).Update(one(c[1]))
				if is, e := Parse(text); err != nil || e != nil || cmp.Diff(c[1], is.Disks["data"], anyTarget) != "" {
					t.Errorf("%v, %v, read back differs:\n%s", err, e, cmp.Diff(c[1], is.Disks["data"], anyTarget))
				}
			}
		})
	}
	same := plain
	same.Cache = "none"
	for _, c := range [][2]Disk{{plain, same}, {same, plain}} {
		if pending, err := domain(t, build(t, one(c[0]))).Pending(one(c[1])); len(pending) > 0 || err != nil {
			t.Errorf("what the device has anyway is pending: %v, %v", pending, err)
		}
	}
}

// A read-only device keeps the access mode of its volume: a write-exclusive volume is still refused to other machines.
func TestTuning_ReadOnlyKeepsAccessMode(t *testing.T) {
	for _, mode := range []volume.AccessMode{volume.WriteExclusive, volume.WriteShared, volume.ReadShared} {
		want := one(Disk{Volume: iscsi(mode, false), Device: Fixed, Bus: "virtio", ReadOnly: true})
		text := build(t, want)
		d, err := Unmarshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if disk := d.Devices.Disks[0]; disk.ReadOnly == nil || (disk.Shareable != nil) != (mode != volume.WriteExclusive) {
			t.Errorf("%s: the device is %+v", mode, disk)
		}
		attached := domain(t, text).Attached()
		if err != nil || !attached[0].ReadOnly || attached[0].Volume.Images[0].AccessMode != mode {
			t.Errorf("%s: attached is %+v, %v", mode, attached, err)
		}
		is, err := Parse(strings.Replace(text, "<readonly></readonly>", "", 1))
		if got := is.Disks["data"]; err != nil || got.ReadOnly {
			t.Errorf("%s: made writable by hand it is %+v, %v", mode, got, err)
		}
	}
}

func TestTuning_IOThreads(t *testing.T) {
	with := func(n uint) Disk {
		return Disk{Volume: local("data", "g1"), Device: Fixed, Bus: "virtio", Tuning: Tuning{IOThread: n}}
	}
	for name, c := range map[string]struct{ before, after string }{
		"none":            {"", "<iothreads>2</iothreads>"},
		"fewer":           {"<iothreads>1</iothreads>", "<iothreads>2</iothreads>"},
		"more":            {"<iothreads>4</iothreads>", "<iothreads>4</iothreads>"},
		"others":          {`<iothreads>1</iothreads><iothreadids><iothread id="7"></iothread></iothreadids>`, `<iothread id="2">`},
		"the same number": {`<iothreads>1</iothreads><iothreadids><iothread id="2"></iothread></iothreadids>`, `<iothreads>1</iothreads>`},
	} {
		before := strings.Replace(build(t, one(with(0))), "<devices>", c.before+"<devices>", 1)
		text, err := domain(t, before).Update(one(with(2)))
		if err != nil || !strings.Contains(text, c.after) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		live := one(with(0))
		live.Disks = nil
		running := strings.Replace(build(t, live), "<devices>", c.before+"<devices>", 1)
		gains := domain(t, running).DisksToAttach(one(with(2)))
		if can := name == "more" || name == "the same number"; err != nil || (len(gains) == 1) != can {
			t.Errorf("%s: plugged in are %v, %v", name, gains, err)
		}
	}
}

// An unmanaged device keeps the settings that libvirt has chosen.
func TestTuning_UnmanagedDiskKeepsItsOwn(t *testing.T) {
	text := strings.Replace(stored(t), ` phase="ready"`, "", 1)
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Disks["vdb"].Tuning; got != (Tuning{}) {
		t.Errorf("read is %+v", got)
	}
	m.Metadata.Phase = Ready
	m.Disks["a"] = Disk{Volume: iscsi(volume.WriteExclusive, false), Device: Fixed, Bus: "virtio"}
	after, err := domain(t, text).Update(m)
	if err != nil || !strings.Contains(after, `<driver name="qemu" type="qcow2"></driver>`) {
		t.Errorf("%v\n%s", err, after)
	}
	is, err := Parse(after)
	if diff := cmp.Diff(m.Disks, is.Disks, anyTarget); err != nil || diff != "" {
		t.Errorf("%v, difference (-want +got):\n%s", err, diff)
	}
	tuned := m.Disks["vdb"]
	tuned.Cache, tuned.Target = "none", "vdq"
	m.Disks["vdb"] = tuned
	after, err = domain(t, after).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	is, err = Parse(after)
	if diff := cmp.Diff(m.Disks, is.Disks, anyTarget); err != nil || diff != "" {
		t.Errorf("with another target it is not the disk it was: %v, difference (-want +got):\n%s", err, diff)
	}
}

func TestTarget_Requested(t *testing.T) {
	disk := func(name, bus, target string) Disk {
		return Disk{Volume: local(name, ""), Device: Fixed, Bus: bus, Target: target}
	}
	m := running()
	m.Disks = map[string]Disk{"b": disk("b", "virtio", ""), "c": disk("c", "sata", "")}
	text := build(t, m)
	address := func(text, kind string) string {
		return strings.Replace(text, `<alias name="ua-disk-`+kind+`">`, `<address `+map[string]string{
			"b": `type="pci" domain="0" bus="0" slot="7" function="0"`, "c": `type="drive" controller="0" bus="0" target="0" unit="0"`,
		}[kind]+`/><alias name="ua-disk-`+kind+`">`, 1)
	}
	text = address(address(text, "b"), "c")
	m.Disks["a"] = disk("a", "virtio", "vda")
	m.Disks["d"] = disk("d", "scsi", "sda")
	after, err := domain(t, text).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Unmarshal(after)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	places := map[string]*libvirtxml.DomainAddress{}
	for _, k := range d.Devices.Disks {
		got[diskKey(k)], places[diskKey(k)] = k.Target.Dev, k.Address
	}
	if diff := cmp.Diff(map[string]string{"a": "vda", "b": "vdb", "c": "sdb", "d": "sda"}, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if places["b"] == nil || places["c"] != nil {
		t.Errorf("a PCI address is lost, or one that the target gives is kept: %v", places)
	}
}

// Inserting a disk that sorts first changes no other disk.
func TestTarget_StableOnInsert(t *testing.T) {
	m := running()
	before, err := Unmarshal(build(t, m))
	if err != nil {
		t.Fatal(err)
	}
	for i := range before.Devices.Disks {
		slot := uint(i + 4)
		before.Devices.Disks[i].Address = &libvirtxml.DomainAddress{PCI: &libvirtxml.DomainAddressPCI{Slot: &slot}}
	}
	text, err := before.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, bus := range []string{"virtio", "scsi", "sata", "usb"} {
		m.Disks["0-"+bus] = Disk{Volume: local("0-"+bus, ""), Device: Fixed, Bus: bus}
	}
	updated, err := domain(t, text).Update(m)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Unmarshal(updated)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Devices.Disks, after.Devices.Disks[:len(before.Devices.Disks)]); diff != "" {
		t.Errorf("the others (-before +after):\n%s", diff)
	}
}
