package content_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
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
				if err != nil || again.Generation != made.Generation {
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
