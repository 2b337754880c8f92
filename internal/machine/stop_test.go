package machine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
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
