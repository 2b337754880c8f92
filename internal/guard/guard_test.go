package guard_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// fakeHost has domains, and records the calls that change them.
type fakeHost struct {
	domains []host.Domain
	done    []string
	stuck   bool
}

func (h *fakeHost) Domains(context.Context) ([]host.Domain, error) { return h.domains, nil }

func (*fakeHost) Pool(context.Context, string) (host.Pool, error) {
	return host.Pool{}, host.ErrNoPool
}

func (h *fakeHost) Volume(_ context.Context, pool, name string) (host.StorageVolume, error) {
	if pool == "gone" {
		return host.StorageVolume{}, host.ErrNotFound
	}
	if pool == "hostile" {
		return host.StorageVolume{Path: "/" + pool + "/" + name}, host.ErrUndescribed
	}
	if pool == "removed" {
		return host.StorageVolume{}, host.ErrNoPool
	}
	return host.StorageVolume{Path: "/" + pool + "/" + name}, nil
}

func (h *fakeHost) Detach(_ context.Context, uuid, device string, _ func(string) (bool, error)) error {
	if h.stuck {
		return context.DeadlineExceeded
	}
	h.done = append(h.done, "detach "+uuid)
	if !strings.Contains(device, "ua-disk-data") {
		return errors.New("not the device: " + device)
	}
	return nil
}

func (h *fakeHost) DetachStored(_ context.Context, uuid, device string) error {
	h.done = append(h.done, "forget "+uuid)
	if !strings.Contains(device, "ua-disk-data") {
		return errors.New("not the device: " + device)
	}
	return nil
}

func (h *fakeHost) ChangeMedium(_ context.Context, uuid, device string) error {
	if h.stuck {
		return host.ErrLocked
	}
	return h.eject("eject "+uuid, device)
}

func (h *fakeHost) ChangeStoredMedium(_ context.Context, uuid, device string) error {
	return h.eject("empty "+uuid, device)
}

func (h *fakeHost) eject(what, device string) error {
	h.done = append(h.done, what)
	if !strings.Contains(device, "ua-disk-data") || strings.Contains(device, "<source") {
		return errors.New("not the empty drive: " + device)
	}
	return nil
}

func image(name, generation string) volume.Image {
	return volume.Image{Type: "file", Format: "qcow2", Name: name, Generation: generation, AccessMode: volume.WriteExclusive, Hosts: []string{"a"}}
}

// machine is a domain with the image as its disk data, behind a disk root.
func machine(t *testing.T, owner, bus string, order uint, images ...volume.Image) host.Domain {
	t.Helper()
	return machineWith(t, owner, domainxml.Disk{
		Volume: volume.Volume{Images: images}, Device: domainxml.Fixed, Bus: bus, BootOrder: order,
	})
}

// drive is machine with the image in a drive.
func drive(t *testing.T, owner string, order uint, i volume.Image) host.Domain {
	t.Helper()
	return machineWith(t, owner, domainxml.Disk{
		Volume: volume.Volume{Images: []volume.Image{i}}, Device: domainxml.CDROM, Bus: "ide", BootOrder: order,
	})
}

func machineWith(t *testing.T, owner string, data domainxml.Disk) host.Domain {
	t.Helper()
	m := domainxml.Machine{
		Name: "web", UUID: "2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0", VCPUs: 1, Memory: 1024, DomainType: "qemu",
		Metadata: domainxml.Metadata{Owner: owner, Phase: domainxml.Ready},
		Disks: map[string]domainxml.Disk{
			"data": data,
			"root": {Volume: volume.Volume{Images: []volume.Image{image("/ssd/root", "r")}}, Device: domainxml.Fixed, Bus: "virtio", BootOrder: 9},
		},
	}
	text, err := domainxml.Build(m)
	if err != nil {
		t.Fatal(err)
	}
	return host.Domain{Name: m.Name, UUID: m.UUID, Stored: text, Live: text}
}

// rooted is a domain whose kernel is booted directly and has that root.
func rooted(d host.Domain, root string) host.Domain {
	d.Live = strings.Replace(d.Live, "<os>", "<os><kernel>/boot/vmlinuz</kernel><cmdline>root="+root+"</cmdline>", 1)
	return d
}

func TestDetach(t *testing.T) {
	data := image("/ssd/data", "g")
	off := func(d host.Domain) host.Domain { d.Live = ""; return d }
	const id = "2b5c7c1f-06c0-4a06-9e12-2d40e4f3f9a0"
	for name, c := range map[string]struct {
		owner  string
		domain host.Domain
		done   string
		refuse string
	}{
		"of a running machine":            {"prod", machine(t, "prod", "virtio", 0, data), "detach " + id + ", forget " + id, ""},
		"below an overlay":                {"prod", machine(t, "prod", "scsi", 0, image("/ssd/over", "o"), data), "detach " + id + ", forget " + id, ""},
		"of one that is off":              {"prod", off(machine(t, "prod", "sata", 1, data)), "forget " + id, ""},
		"of one that is saved with it":    {"prod", saved(off(machine(t, "prod", "virtio", 0, data))), "", "which its managed save goes on with"},
		"that it boots from":              {"prod", machine(t, "prod", "virtio", 1, data), "", "which it boots from, and runs. Stop the machine first (running = false)"},
		"that its kernel has as its root": {"prod", rooted(machine(t, "prod", "virtio", 0, data), "/dev/vdb1"), "", "which it boots from, and runs. Stop the machine first (running = false)"},
		"on SATA":                         {"prod", machine(t, "prod", "sata", 0, data), "", "which a running guest can't lose"},
		"of another owner":                {"prod", machine(t, "other", "virtio", 0, data), "", "that domain is not this configuration's"},
		"of another owner that is off":    {"prod", off(machine(t, "other", "virtio", 0, data)), "", "that domain is not this configuration's"},
		"without owners":                  {"", machine(t, "", "virtio", 0, data), "detach " + id + ", forget " + id, ""},
		"without owners, recreated since": {"", machine(t, "", "virtio", 0, image("/ssd/data", "older")), "", "that domain is not this configuration's"},
		"recreated since, and written to": {"prod", machine(t, "prod", "virtio", 0, image("/ssd/data", "older")), "", "To save it: virsh suspend web, so that its guest writes nothing after the copy, then virsh blockcopy web vdb <new file> --transient-job"},
		"in a drive, recreated since":     {"prod", drive(t, "prod", 0, image("/ssd/data", "older")), "eject " + id + ", empty " + id, ""},
		"in a drive":                      {"prod", drive(t, "prod", 0, data), "eject " + id + ", empty " + id, ""},
		"in a drive that it booted from":  {"prod", drive(t, "prod", 1, data), "", "which it boots from, and runs. Stop the machine first (running = false)"},
		"in a drive of one that is off":   {"prod", off(drive(t, "prod", 1, data)), "empty " + id, ""},
		"in a drive of one that is saved": {"prod", saved(off(drive(t, "prod", 0, data))), "", "which its managed save goes on with"},
		"in a drive of another owner":     {"prod", drive(t, "other", 0, data), "", "that domain is not this configuration's. Detach it there (virsh change-media web hda --eject)"},
		"in a drive, without owners":      {"", drive(t, "", 0, data), "eject " + id + ", empty " + id, ""},
		"in a floppy drive": {"prod", machineWith(t, "prod", domainxml.Disk{
			Volume: volume.Volume{Images: []volume.Image{data}}, Device: domainxml.Floppy, Bus: "fdc",
		}), "eject " + id + ", empty " + id, ""},
		"as a logical unit": {"prod", machineWith(t, "prod", domainxml.Disk{
			Volume: volume.Volume{Images: []volume.Image{data}}, Device: domainxml.LUN, Bus: "scsi",
		}), "detach " + id + ", forget " + id, ""},
		"that nobody has": {"prod", machine(t, "prod", "virtio", 0, image("/ssd/other", "g")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &fakeHost{domains: []host.Domain{c.domain}}
			err := detach(t, map[string]guard.Host{"a": h}, data, []string{c.owner})
			if (err != nil) != (c.refuse != "") || err != nil && (!errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), c.refuse) ||
				!strings.Contains(err.Error(), "domain web on host a has /ssd/data as its disk data")) {
				t.Errorf("got %v, want %q", err, c.refuse)
			}
			if done := strings.Join(h.done, ", "); done != c.done {
				t.Errorf("it did %q, want %q", done, c.done)
			}
		})
	}
}

func TestDetach_OneRefusalChangesNothing(t *testing.T) {
	data := volume.Image{Type: "network", Protocol: "iscsi", Format: "raw", Name: "iqn.2025-01.io.example:a/1", AccessMode: volume.ReadShared}
	good := &fakeHost{domains: []host.Domain{machine(t, "prod", "virtio", 0, data)}}
	bad := &fakeHost{domains: []host.Domain{machine(t, "prod", "virtio", 1, data)}}
	err := detach(t, map[string]guard.Host{"a": good, "b": bad}, data, []string{"prod"})
	if !errors.Is(err, guard.ErrInUse) || len(good.done)+len(bad.done) != 0 {
		t.Errorf("got %v; done was %v, %v", err, good.done, bad.done)
	}
}

// A device that libvirt can't detach is refused before any change.
func TestDetach_RefusesPassthroughUnit(t *testing.T) {
	const iqn = "iqn.2025-01.io.example:a"
	data := volume.Image{Type: "network", Protocol: "iscsi", Format: "raw", Name: iqn + "/1", AccessMode: volume.ReadShared}
	d := machine(t, "prod", "virtio", 0, data)
	d.Live = ""
	d.Stored = strings.Replace(d.Stored, "</devices>", `<hostdev mode='subsystem' type='scsi'><source protocol='iscsi' name='`+iqn+
		`/1'><host name='h'/></source></hostdev></devices>`, 1)
	h := &fakeHost{domains: []host.Domain{d}}
	err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"})
	if !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), "virsh edit web") || len(h.done) != 0 {
		t.Errorf("got %v; done was %v", err, h.done)
	}
}

func TestDetach_GuestRefusalKeepsDefinition(t *testing.T) {
	data := image("/ssd/data", "g")
	h := &fakeHost{domains: []host.Domain{machine(t, "prod", "virtio", 0, data)}, stuck: true}
	if err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"}); !errors.Is(err, context.DeadlineExceeded) || len(h.done) != 0 {
		t.Errorf("got %v; done was %v", err, h.done)
	}
}

// The error of a guest that does not acknowledge describes how to proceed in two applies.
func TestDetach_UnresponsiveGuest(t *testing.T) {
	data := image("/ssd/data", "g")
	h := &deafHost{fakeHost{domains: []host.Domain{machine(t, "prod", "virtio", 0, data)}}}
	err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"})
	if !errors.Is(err, host.ErrDetachRefused) || len(h.done) != 0 || !strings.Contains(err.Error(), "leave this resource in the configuration") {
		t.Errorf("got %v; done was %v", err, h.done)
	}
}

// deafHost has guests that do not acknowledge an unplug.
type deafHost struct{ fakeHost }

func (h *deafHost) Detach(context.Context, string, string, func(string) (bool, error)) error {
	return host.ErrDetachRefused
}

func TestDetach_LockedTrayKeepsMedium(t *testing.T) {
	data := image("/ssd/data", "g")
	h := &fakeHost{domains: []host.Domain{drive(t, "prod", 0, data)}, stuck: true}
	err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"})
	if !errors.Is(err, host.ErrLocked) || len(h.done) != 0 || !strings.Contains(err.Error(), "domain web on host a, disk data") {
		t.Errorf("got %v; done was %v", err, h.done)
	}
}

func TestDetach_EjectsBeforeUnplug(t *testing.T) {
	data := image("/ssd/data", "g")
	h := &fakeHost{domains: []host.Domain{machine(t, "prod", "virtio", 0, data), drive(t, "prod", 0, data)}}
	err := detach(t, map[string]guard.Host{"a": h}, data, []string{"prod"})
	if err != nil || len(h.done) != 4 || !strings.HasPrefix(h.done[0], "eject") {
		t.Errorf("got %v; done was %v", err, h.done)
	}
}

func TestUsers(t *testing.T) {
	byHand := func(disk string) host.Domain {
		return host.Domain{Name: "theirs", Live: "<domain><name>theirs</name><devices>" + disk + "</devices></domain>"}
	}
	journal, err := domainxml.BuildJournal(domainxml.Journal{
		Name: "virtclaim-0123456789abcdef", Note: domainxml.Note{Pool: "ssd", Volume: "new"},
		Copy: &volume.Volume{Images: []volume.Image{image("/ssd/new", ""), image("/ssd/data", "g")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{domains: []host.Domain{
		byHand(`<disk type='volume' device='disk'><source pool='ssd' volume='data'/><target dev='vda'/></disk>`),
		byHand(`<disk type='file' device='cdrom'><source file='/ssd/data'/><target dev='sda'/></disk>`),
		byHand(`<disk type='file' device='cdrom'><target dev='sda'/></disk>`),
		byHand(`<disk type='volume' device='disk'><source pool='gone' volume='data'/><target dev='vda'/></disk>`),
		byHand(`<disk type='file' device='disk'><source file='/ssd/data2'/><target dev='vda'/></disk>`),
		{Name: "virtclaim-0123456789abcdef", Stored: journal},
		{Name: "old", Stored: byHand(`<disk type='volume' device='disk'><source pool='removed' volume='data'/><target dev='vda'/></disk>`).Live},
		{Name: "virtclaim-measure-01234567", Live: byHand(`<disk type='file' device='disk'><source file='/ssd/data'/><target dev='vda'/></disk>`).Live},
	}}
	const iqn = "iqn.2025-01.io.example:a"
	others := &fakeHost{domains: []host.Domain{
		byHand(`<disk type='file' device='disk'><source file='/ssd/x'/><target dev='vda'/><mirror type='network' job='copy'>` +
			`<format type='raw'/><source protocol='iscsi' name='` + iqn + `/1'><host name='h'/></source></mirror></disk>`),
		byHand(`<hostdev mode='subsystem' type='scsi'><source protocol='iscsi' name='` + iqn + `/1'><host name='h'/></source></hostdev>`),
		byHand(`<disk type='block' device='disk'><source dev='/dev/disk/by-path/ip-h:3260-iscsi-` + iqn + `-lun-1'/><target dev='vda'/></disk>`),
	}}
	if uses, err := guard.Users(t.Context(), "a", others, volume.Image{Type: "network", Protocol: "iscsi", Name: iqn + "/1"}); err != nil || len(uses) != 3 {
		t.Errorf("of a block job's target, a SCSI device and a device of the host it finds %+v, %v", uses, err)
	}
	uses, err := guard.Users(t.Context(), "a", h, image("/ssd/data", "anything"))
	if err != nil || len(uses) != 3 {
		t.Fatalf("got %+v, %v", uses, err)
	}
	if uses[0].Device.Target != "vda" || !uses[0].Live || uses[0].Stored || uses[2].Depth != 1 || !uses[2].Stored {
		t.Errorf("got %+v", uses)
	}
	err = detach(t, map[string]guard.Host{"a": &fakeHost{domains: h.domains[5:6]}}, image("/ssd/data", "g"), []string{"prod"})
	if !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), "a clone of it was begun and never finished") {
		t.Errorf("while a clone of it is made: %v", err)
	}
}

// What fills a volume can't be taken from it.
func TestDetach_Filling(t *testing.T) {
	target := shared(volume.WriteExclusive, "a")
	interrupted := filler(t, high, target)
	for want, d := range map[string]host.Domain{
		": it is being filled. Wait until that is done": live(interrupted),
		": filling it was interrupted. Apply the configuration of its virtclaim_volume_content again, or give it up: virsh undefine " + interrupted.Name: interrupted,
	} {
		h := &fakeHost{domains: []host.Domain{d}}
		err := detach(t, map[string]guard.Host{"a": h}, target, []string{"me"})
		if !errors.Is(err, guard.ErrInUse) || !strings.Contains(err.Error(), want) || len(h.done) > 0 {
			t.Errorf("want %q, got %v, and %v was done", want, err, h.done)
		}
	}
}

// A domain that references, by pool and name, a volume that libvirt can't describe blocks no other image of the host.
func TestUsers_UndescribedVolume(t *testing.T) {
	h := &fakeHost{domains: []host.Domain{{Name: "theirs", UUID: "1", Stored: "<domain><name>theirs</name><devices><disk type='volume' device='disk'>" +
		"<source pool='hostile' volume='data'/><target dev='vda'/></disk></devices></domain>"}}}
	for name, want := range map[string]int{"/ssd/other": 0, "/hostile/data": 1} {
		if uses, err := guard.Users(t.Context(), "a", h, volume.Image{Type: "file", Name: name, Hosts: []string{"a"}}); err != nil || len(uses) != want {
			t.Errorf("%s: %v, %v", name, uses, err)
		}
	}
}

// What a domain of a newer provider has, or only names, is used by an unknown holder: no machine gets it, and nothing takes it away. Other
// storage of its host is not blocked.
func TestUsers_NewerProvider(t *testing.T) {
	ours := machine(t, "me", "virtio", 2, image("/ssd/data", "g"), image("/ssd/golden", "h"))
	for _, d := range []*string{&ours.Stored, &ours.Live} {
		*d = strings.NewReplacer("libvirt/domain/1", "libvirt/domain/2", "</metadata>",
			`<a:copy to="/ssd/elsewhere" xmlns:a="https://example.com/"/></metadata>`).Replace(*d)
	}
	off, saved := ours, ours
	off.Live, saved.Live, saved.Saved, saved.Stored = "", "", ours.Stored, "<domain/>"
	for state, d := range map[string]host.Domain{"runs": ours, "is off": off, "is saved": saved} {
		h := &fakeHost{domains: []host.Domain{d}}
		for name, used := range map[string]bool{
			"/ssd/data": true, "/ssd/golden": true, "/ssd/root": true, "/ssd/elsewhere": true, "/ssd/other": false, "/ssd": false,
		} {
			wanted := image(name, "")
			wanted.AccessMode = volume.ReadShared
			uses, err := guard.Users(t.Context(), "a", h, wanted)
			isRefused := errors.Is(err, guard.ErrInUse) && errors.Is(err, newer.Err) && strings.Contains(err.Error(), "domain web on host a")
			if len(uses) > 0 || isRefused != used || !used && err != nil {
				t.Errorf("it %s: %s: %v, %v", state, name, uses, err)
			}
			if err := detach(t, map[string]guard.Host{"a": h}, wanted, []string{"me"}); used == (err == nil) || len(h.done) > 0 {
				t.Errorf("it %s: %s was detached: %v, %v", state, name, err, h.done)
			}
		}
	}
}

// listed are the domains of a host.
func listed(t *testing.T, h guard.Looker) []domainxml.Definitions {
	t.Helper()
	domains, err := guard.List(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return domains
}

// acquire is the error of guard.Acquire.
func acquire(t *testing.T, e guard.Request) error {
	t.Helper()
	_, err := guard.Acquire(t.Context(), e)
	return err
}

// detach is guard.Detach of all uses.
func detach(t *testing.T, hosts map[string]guard.Host, image volume.Image, owners []string) error {
	t.Helper()
	var all []guard.Use
	for _, key := range slices.Sorted(maps.Keys(hosts)) {
		uses, err := guard.Users(t.Context(), key, hosts[key], image)
		if err != nil {
			return err
		}
		all = append(all, uses...)
	}
	return guard.Detach(t.Context(), hosts, image, owners, all, func(guard.Use) error { return nil })
}
