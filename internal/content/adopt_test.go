package content_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// user is a domain with the volume /ssd/web, whose metadata have that phase, and that generation of the volume.
func user(phase, generation string) *fakeDomain {
	const metadata = `<metadata><machine xmlns="https://virtclaim.io/libvirt/domain/1" owner="prod" phase="%s"><disk key="vda">` +
		`<image name="/ssd/web" access-mode="write-exclusive" generation="%s"/></disk></machine></metadata>`
	d := opener(opens("file='/ssd/web'", "qcow2"))
	if phase != "" {
		d.xml = strings.Replace(d.xml, "<devices>", fmt.Sprintf(metadata, phase, generation)+"<devices>", 1)
	}
	return d
}

// A finished volume that a finished machine uses is in another state, and is not adopted: destroying the copy of a configuration's folder
// would delete it.
func TestMake_AdoptsNothingThatIsUsed(t *testing.T) {
	const former = "1d5b4b3e-52c6-4d0e-9f43-0e4a3a0a8a11"
	for name, c := range map[string]struct {
		phase, generation string // empty means the generation of the volume itself
		runs, adopted     bool
	}{
		"a machine":                       {phase: "ready"},
		"a machine that runs":             {phase: "ready", runs: true},
		"a domain of others":              {},
		"a machine that is made":          {phase: "creating", runs: true, adopted: true},
		"a machine that had the last one": {phase: "ready", generation: former, adopted: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			made := mustMake(t, h, clone("web"))
			if c.generation == "" {
				c.generation = made.Generation
			}
			h.domains["web"] = user(c.phase, c.generation)
			h.domains["web"].active = c.runs
			again, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, clone("web"), quiet)
			if c.adopted {
				if err != nil || again.Generation != made.Generation { // the domain knows it by that
					t.Errorf("it was not adopted: %v", err)
				}
				return
			}
			if !errors.Is(err, content.ErrForeign) || !strings.Contains(err.Error(), "used by the domain web") ||
				!strings.Contains(err.Error(), "terraform import") || len(h.domains) != 2 || len(h.volumes) != 1 {
				t.Errorf("got %v, and the host has %v, %v", err, h.domains, h.volumes)
			}
		})
	}
}

// A volume that is adopted gets a new identity, so that the state of a copied folder does not share it. That can be interrupted anywhere.
func TestMake_AdoptedVolumeIsAnother(t *testing.T) {
	for name, spec := range map[string]content.Spec{
		"a clone":      clone("web"),
		"a raw disk":   {Pool: "ssd", Name: "web", Format: "raw", Capacity: 1 << 20},
		"an overlay":   overDisk("web", "/master", "m"),
		"a qcow2 disk": {Pool: "ssd", Name: "web", Format: "qcow2", Capacity: 1 << 20},
	} {
		for failAt := 1; ; failAt++ {
			h := newHost()
			first := mustMake(t, h, spec)
			h.changes, h.failAt, h.dead, h.after = 0, failAt, true, failAt%2 == 0
			_, err := (&content.Creator{Owner: "prod"}).Make(t.Context(), "a", h, spec, quiet)
			if reached := h.changes >= failAt; !reached {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if failAt < 3 {
					t.Errorf("%s: its adoption changes nothing", name)
				}
				break
			}
			second := mustMake(t, h, spec)
			if err := content.Recognize(t.Context(), h, h.volumes["ssd/web"].StorageVolume, spec.Format, second.Generation); err != nil {
				t.Errorf("%s, interrupted at change %d: %v", name, failAt, err)
			}
			if err := content.Recognize(t.Context(), h, h.volumes["ssd/web"].StorageVolume, spec.Format, first.Generation); !errors.Is(err, content.ErrReplaced) {
				t.Errorf("%s, interrupted at change %d: the first state still recognizes it: %v", name, failAt, err)
			}
			if err := content.Forget(t.Context(), h, "ssd", "web", second.Generation); err != nil || len(h.domains) != 0 {
				t.Errorf("%s, interrupted at change %d: %v, and the host has %v", name, failAt, err, h.domains)
			}
		}
	}
}

// A volume of which another one is an overlay or a copy keeps its identity: the other one is known by that.
func TestMake_AdoptedMasterStays(t *testing.T) {
	for name, copyMode := range map[string]volume.CopyMode{"an overlay": volume.CopyOnWrite, "a clone": volume.Clone} {
		h := newHost()
		blank := content.Spec{Pool: "ssd", Name: "master", Format: "qcow2", Capacity: 1 << 20}
		master := mustMake(t, h, blank)
		above := overDisk("web", master.Path, master.Generation)
		above.Mode = copyMode
		mustMake(t, h, above)
		if again := mustMake(t, h, blank); again.Generation != master.Generation {
			t.Errorf("below %s it is another one", name)
		}
		mustMake(t, h, above)
	}
}

// overDisk is an overlay of a local image.
func overDisk(name, master, generation string) content.Spec {
	return content.Spec{Pool: "ssd", Name: name, Mode: volume.CopyOnWrite, Format: "qcow2", Capacity: 1 << 20, Master: volume.Volume{
		Capacity: size(1 << 20), Images: []volume.Image{{Type: "file", Format: "qcow2", Name: master, Generation: generation, AccessMode: volume.ReadShared}},
	}}
}
