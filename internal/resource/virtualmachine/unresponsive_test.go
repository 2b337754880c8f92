package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
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
				limited, done := manager{log: quiet, mayRestart: mayRestart}.unplugging(ctx, "web", "disk data")
				if deadline, _ := limited.Deadline(); time.Until(deadline) != want {
					t.Errorf("of %s, restart %v, it is %s, not %s", c.timeout, mayRestart, time.Until(deadline), want)
				}
				done()
				cancel()
			}
		}
	})
}

// A destroy that waits for its guest in vain says what works in a replacement, too, where no apply can set force_stop.
func TestVirtualMachine_DestroyNamesWayOut(t *testing.T) {
	m := model{Name: types.StringValue("web")}
	text := m.ofDestroy(fmt.Errorf("shut down: %w", host.ErrStillRunning)).Error()
	if forceOff, apply := strings.Index(text, "virsh destroy web\n"), strings.Index(text, "apply force_stop = true"); forceOff < 0 || apply < forceOff {
		t.Errorf("it says %q", text)
	}
	if other := errors.New("refused"); m.ofDestroy(other).Error() != other.Error() {
		t.Error("another error is changed")
	}
}
