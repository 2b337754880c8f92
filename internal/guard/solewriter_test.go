package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// settled counts the domains that were awaited.
type settled struct {
	place
	asked *int
}

func (s settled) AwaitDevice(context.Context, string, string) error {
	*s.asked++
	return nil
}

// An unmanaged domain that runs with the image may hold the lock. All running domains have opened it before the lock is probed.
func TestCheckSoleWriter(t *testing.T) {
	data := shared(volume.WriteShared, "a")
	mine, ours := live(user(t, "web", high, "me", "ready", data)), live(user(t, "db", low, "me", "ready", data))
	theirs := live(user(t, "rescue", low, "", "", data))
	reads := data
	reads.AccessMode = volume.ReadShared
	for name, c := range map[string]struct {
		domains []host.Domain
		asked   int
		refused bool
	}{
		"alone":               {[]host.Domain{mine}, 1, false},
		"a machine of ours":   {[]host.Domain{mine, ours}, 2, false},
		"a domain of others":  {[]host.Domain{mine, theirs}, 2, true},
		"one that is off":     {[]host.Domain{mine, user(t, "rescue", low, "", "", data)}, 1, false},
		"one that only reads": {[]host.Domain{mine, live(user(t, "rescue", low, "me", "ready", reads))}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, asked := newWorld(), 0
			for _, d := range c.domains {
				w.set("a", d)
			}
			err := guard.CheckSoleWriter(t.Context(), "a", settled{place{w, "a"}, &asked}, data, high)
			if errors.Is(err, guard.ErrInUse) != c.refused || err != nil && !c.refused || asked != c.asked {
				t.Errorf("%d were asked: %v", asked, err)
			}
		})
	}
}
