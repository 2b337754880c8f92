package domainxml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Compare lists the differences of the running domain by their names in the configuration, and the endpoints of the running domain.
func TestCompare_PendingChanges(t *testing.T) {
	metadata := Metadata{Phase: Ready}
	const live = `<domain type='qemu' id='3'><name>web</name><memory unit='KiB'>1024</memory><vcpu>1</vcpu><devices>` +
		`<serial type='pty'><source path='/dev/pts/3'/><target port='0'/></serial>` +
		`<console type='pty'><source path='/dev/pts/3'/><target type='serial' port='0'/></console>` +
		`<console type='pty'><source path='/dev/pts/4'/><target type='virtio' port='1'/></console>` +
		`<graphics type='vnc' port='5901' autoport='yes' listen='::1'/></devices></domain>`
	for name, c := range map[string]struct {
		stored  Machine
		pending string
	}{
		"nothing": {Machine{
			Metadata: metadata, VCPUs: 1, Memory: 1024, Serial: &Serial{}, Console: &Console{}, Graphics: &Graphics{Type: VNC, Listen: "::1"},
		}, ""},
		"parts that go": {Machine{Metadata: metadata, VCPUs: 1, Memory: 1024}, "serial graphics console"},
		"a part that comes": {Machine{
			Metadata: metadata, VCPUs: 1, Memory: 1024, Serial: &Serial{}, Console: &Console{}, Graphics: &Graphics{Type: VNC, Listen: "::1"}, RNG: &RNG{},
		}, "rng"},
		"a domain that nobody has changed here": {Machine{VCPUs: 1, Memory: 1024}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := c.stored
			if err := is.Compare(domain(t, live)); err != nil || strings.Join(is.Pending, " ") != c.pending {
				t.Errorf("pending are %v (%v), want %s", is.Pending, err, c.pending)
			}
			want := Endpoints{Serial: "/dev/pts/3", Console: "/dev/pts/4", Graphics: "vnc://[::1]:5901"}
			if diff := cmp.Diff(want, is.Endpoints); diff != "" {
				t.Errorf("it is to be seen elsewhere (-want +got):\n%s", diff)
			}
		})
	}
}

// A graphics card that libvirt has added is not pending once it is configured, or not any more, because it is the same card.
func TestCompare_DefaultVideoIsNotPending(t *testing.T) {
	const card = `<video><model type='vga' vram='16384' heads='1'/></video>`
	metadata := func(configured string) string {
		return `<metadata><machine xmlns='` + Namespace + `' phase='ready'>` + configured + `</machine></metadata>`
	}
	text := func(configured, card string) string {
		return `<domain type='qemu' id='3'><name>web</name><memory unit='KiB'>1024</memory><vcpu>1</vcpu>` + metadata(configured) +
			`<devices>` + card + `</devices></domain>`
	}
	const asked, vram = `<configured>video</configured>`, `<configured>video.vram</configured>`
	for name, c := range map[string]struct{ live, stored, pending string }{
		"configured as it is":  {text("", card), text(asked, card), ""},
		"its memory as it is":  {text(asked, card), text(asked+vram, card), ""},
		"no longer configured": {text(asked, card), text("", card), ""},
		"configured otherwise": {text("", card), text(asked, strings.Replace(card, "vga", "qxl", 1)), "video"},
		"of another memory":    {text("", card), text(asked+vram, strings.Replace(card, "16384", "8192", 1)), "video"},
		"replaced by libvirt's": {
			text(asked, card), text("", strings.Replace(card, "vga", "cirrus", 1)), "video",
		},
		"removed": {text(asked, card), text("", ""), "video"},
	} {
		t.Run(name, func(t *testing.T) {
			is, err := domain(t, c.stored).Machine()
			if err == nil {
				err = is.Compare(domain(t, c.live))
			}
			if err != nil || strings.Join(is.Pending, " ") != c.pending {
				t.Errorf("pending are %v (%v), want %q", is.Pending, err, c.pending)
			}
		})
	}
}

// A change of the running domain only, made outside of Terraform, is drift, which does not wait for a restart.
func TestCompare_DriftIsNotPending(t *testing.T) {
	stored := Machine{
		Metadata: Metadata{Phase: Ready}, Name: "web", VCPUs: 2, Memory: 131072, DomainType: "qemu", Disks: map[string]Disk{
			"drive": {Device: CDROM, Bus: "ide", Volume: local("seed", "g1")},
		},
		Interfaces: map[string]Interface{"lan": {Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:01"}},
	}
	live := stored
	live.Title, live.VCPUs, live.MaxVCPUs = "theirs", 1, 2
	live.Disks = map[string]Disk{"drive": {Device: CDROM, Bus: "ide"}}
	live.Interfaces = map[string]Interface{"lan": {Bridge: "br1", Model: "virtio", MAC: "52:54:00:00:00:01"}}
	const theirs = `<disk type='file' device='disk'><source file='/theirs'/><target dev='vdc' bus='virtio'/></disk>`
	text := strings.Replace(build(t, live), "</devices>", theirs+"</devices>", 1)
	if err := stored.Compare(domain(t, text)); err != nil || len(stored.Pending) != 0 {
		t.Errorf("pending are %v, %v", stored.Pending, err)
	}
	if _, shown := stored.Disks["vdc"]; !shown || stored.Drift.Title == nil || stored.Drift.VCPUs != 1 {
		t.Errorf("it is not shown: %+v", stored)
	}
}

// A size that is not configured is not zero.
func TestCompare_UnsetSizeStays(t *testing.T) {
	is := Machine{VCPUs: 2, MaxVCPUs: 4, Memory: 131072, MaxMemory: 262144}
	if got := (Machine{MaxVCPUs: 8}).SizedAs(is); got.VCPUs != 2 || got.MaxVCPUs != 4 || got.Memory != 131072 || got.MaxMemory != 262144 {
		t.Errorf("it is to have %+v", got)
	}
	if got := (Machine{VCPUs: 1, Memory: 65536}).SizedAs(is); got.VCPUs != 1 || got.MaxVCPUs != 0 || got.Memory != 65536 || got.MaxMemory != 0 {
		t.Errorf("it is to have %+v", got)
	}
}

// A stored definition has no terminals, and a display with an automatic port has no endpoint in it.
func TestEndpoints_StoppedDomainHasNone(t *testing.T) {
	d, err := Unmarshal(build(t, Machine{Serial: &Serial{}, Console: &Console{}, Graphics: &Graphics{Type: Spice, Listen: "127.0.0.1"}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := endpointsOf(d); got != (Endpoints{}) {
		t.Errorf("it is to be seen at %+v", got)
	}
}

// A device that can't be unplugged continues to use the deleted file when its disk was recreated under the same name: that is pending.
func TestCompare_RemadeDiskIsPending(t *testing.T) {
	machine := func(generation string) Machine {
		return Machine{
			Metadata: Metadata{Phase: Ready}, Name: "web", VCPUs: 1, Memory: 131072, DomainType: "qemu",
			Disks: map[string]Disk{"root": {Device: Fixed, Bus: "sata", Volume: local("root", generation)}},
		}
	}
	for _, c := range []struct {
		live, stored, pending string
	}{{"g1", "g1", ""}, {"g1", "g2", "disk root"}, {"", "g2", ""}} {
		is := machine(c.stored)
		if err := is.Compare(domain(t, build(t, machine(c.live)))); err != nil || strings.Join(is.Pending, " ") != c.pending {
			t.Errorf("%q runs and %q is stored: pending are %v, %v", c.live, c.stored, is.Pending, err)
		}
	}
}
