package machine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// If a machine may be restarted when its guest does not acknowledge an unplug, the unplug does not use up a short timeout. Of a long one the host
// takes a fifth, which is not cut again.
func TestVirtualMachine_UnplugLeavesTimeForRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			timeout, restarts, stays time.Duration
		}{
			{time.Hour, time.Hour, time.Hour}, {10 * time.Minute, 10 * time.Minute, 10 * time.Minute}, {2 * time.Minute, 24 * time.Second, 2 * time.Minute},
		} {
			for mayRestart, want := range map[bool]time.Duration{true: c.restarts, false: c.stays} {
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				limited, done := Manager{log: quiet, mayRestart: mayRestart}.unplugging(ctx, "web", "disk data")
				if deadline, _ := limited.Deadline(); time.Until(deadline) != want {
					t.Errorf("of %s, restart %v, it is %s, not %s", c.timeout, mayRestart, time.Until(deadline), want)
				}
				done()
				cancel()
			}
		}
	})
}

// The agent is asked where it may be, and the running machine has its port.
func TestStop_ByAgent(t *testing.T) {
	for name, c := range map[string]struct{ byAgent, has, asked bool }{
		"it has an agent": {true, true, true}, "it has none": {true, false, false}, "the button alone": {false, true, false},
	} {
		text, err := domainxml.Build(domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Type: "pc", GuestAgent: c.has})
		if err != nil {
			t.Fatal(err)
		}
		h := &counted{busy{leftOver{stubborn{oneDomain: oneDomain{stored: text}, live: text}, true}}, map[string]int{}}
		m := Manager{log: quiet, host: h, ByAgent: c.byAgent}
		at, err := m.see(t.Context(), "")
		if err == nil {
			err = m.stop(t.Context(), "", at, false)
		}
		if err != nil || (h.asked["agent"] == 1) != c.asked {
			t.Errorf("%s: asked is %v, %v", name, h.asked, err)
		}
	}
}
