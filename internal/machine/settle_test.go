package machine

import (
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// A guest that has been on the target never goes on at the source, and one that has not never counts as arrived.
func TestIsOnTarget(t *testing.T) {
	stored := func(is domainxml.Move) *domainxml.Domain {
		d, err := domainxml.Read("<domain type='qemu'><name>web</name><uuid>6a1c1b1e-0000-4000-8000-000000000001</uuid></domain>")
		if err != nil {
			t.Fatal(err)
		}
		text, err := d.WithMove(is, domainxml.Arrival{})
		if err != nil {
			t.Fatal(err)
		}
		if d, err = domainxml.Read(text); err != nil {
			t.Fatal(err)
		}
		return d
	}
	none := stored(domainxml.Move{})
	leaves := stored(domainxml.Move{From: "a", To: "b", ID: "1"})
	arrives := stored(domainxml.Move{From: "a", To: "b", ID: "1", Arrives: true})
	type at = Observation
	runs, pauses, left := host.StateOf(1, 1), host.StateOf(3, 1), host.StateOf(3, 2)
	for name, c := range map[string]struct {
		source, target at
		arrived, fails bool
	}{
		"it was never moved":                         {at{stored: none, live: none, state: runs}, at{}, false, false},
		"it is off, and was never moved":             {at{stored: none}, at{}, false, false},
		"announced, and runs":                        {at{stored: leaves, live: none, state: runs}, at{stored: arrives}, false, false},
		"announced, and is off":                      {at{stored: leaves}, at{stored: arrives}, false, false},
		"announced there only":                       {at{stored: none}, at{stored: arrives}, false, false},
		"left paused, and never there":               {at{stored: leaves, live: none, state: left}, at{stored: arrives}, false, false},
		"left paused, and nothing there":             {at{stored: leaves, live: none, state: left}, at{}, false, false},
		"left paused, and runs there":                {at{stored: leaves, live: none, state: left}, at{stored: leaves, live: none, state: runs}, true, false},
		"left paused, ran there, and is off":         {at{stored: leaves, live: none, state: left}, at{stored: leaves}, true, false},
		"paused by a user":                           {at{stored: leaves, live: none, state: pauses}, at{stored: arrives}, false, false},
		"it came":                                    {at{}, at{stored: leaves, live: none, state: runs}, true, false},
		"it came, off":                               {at{stored: leaves}, at{stored: leaves}, true, false},
		"it came, and is off, and nothing is left":   {at{}, at{stored: leaves}, true, false},
		"its definition was removed meanwhile":       {at{}, at{stored: arrives}, false, false},
		"runs, and libvirt has stored it there":      {at{stored: leaves, live: none, state: runs}, at{stored: leaves}, false, false},
		"others moved it, with a definition left":    {at{stored: none}, at{stored: none, live: none, state: runs}, true, false},
		"others stored it on both, and it runs here": {at{stored: none, live: none, state: runs}, at{stored: none}, false, false},
		"others stored it on both, and it is off":    {at{stored: none}, at{stored: none}, false, true},
		"it runs on both":                            {at{stored: leaves, live: none, state: runs}, at{stored: leaves, live: none, state: runs}, false, true},
		"what was prepared was started there":        {at{stored: leaves}, at{stored: arrives, live: none, state: runs}, false, true},
		"paused by a user, and it came":              {at{stored: leaves, live: none, state: pauses}, at{stored: leaves}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			arrived, err := found{source: c.source, target: c.target}.isOnTarget()
			if arrived != c.arrived || (err != nil) != c.fails {
				t.Errorf("got %t, %v", arrived, err)
			}
		})
	}
}
