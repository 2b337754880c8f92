package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/digitalocean/go-libvirt"
)

func TestOrLocked_Tray(t *testing.T) {
	failed := libvirt.Error{Code: uint32(libvirt.ErrOperationFailed)}
	const full, empty = `<disk device="cdrom"><source file="/a"/></disk>`, `<disk device="cdrom"/>`
	for name, c := range map[string]struct {
		device string
		err    error
		locked bool
	}{
		"an eject":              {empty, failed, true},
		"an eject that is done": {empty, nil, false},
		"an eject by nobody":    {empty, libvirt.Error{Code: uint32(libvirt.ErrNoDomain)}, false},
		"an insertion":          {full, failed, false},
	} {
		err := orLocked(c.device, c.err)
		if errors.Is(err, ErrLocked) != c.locked || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A guest gets a fifth of a long timeout, a minute of a short one, and never more than the remaining time, to acknowledge an unplug.
func TestDetach_TimeFollowsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]time.Duration{
			10 * time.Minute: 2 * time.Minute, time.Hour: 12 * time.Minute, 2 * time.Minute: time.Minute, 8 * time.Second: 8 * time.Second,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			if got := unplugTime(ctx); got != want {
				t.Errorf("of %s it is %s, not %s", timeout, got, want)
			}
			cancel()
		}
	})
}
