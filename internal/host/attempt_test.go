package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Many resources of an apply use a host that drops packets: they fail together with the first, not one after the other.
func TestAttempt_HostDownIsDialedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a attempts
		var dials atomic.Int32
		down, start := errors.New("no answer"), time.Now()
		swallow := func(context.Context) error {
			dials.Add(1)
			time.Sleep(dialTimeout)
			return down
		}
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if err := a.connect(t.Context(), swallow); !errors.Is(err, down) {
					t.Errorf("got %v", err)
				}
			})
		}
		calls.Wait()
		for range 50 { // Terraform's next resources, which start after the first have failed
			if err := a.connect(t.Context(), swallow); !errors.Is(err, down) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(start); took != dialTimeout || dials.Load() != 1 {
			t.Errorf("%d dials took %s", dials.Load(), took)
		}
		time.Sleep(dialTimeout)
		if err := a.connect(t.Context(), swallow); !errors.Is(err, down) || dials.Load() != 2 {
			t.Errorf("got %v after %d dials", err, dials.Load())
		}
	})
}

// A libvirtd that restarts refuses connections for a moment, and must be found as soon as it listens again.
func TestAttempt_RefusalIsRetriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a attempts
		refused := errors.New("refused")
		for range 3 {
			if err := a.connect(t.Context(), func(context.Context) error { return refused }); !errors.Is(err, refused) {
				t.Errorf("got %v", err)
			}
		}
		if err := a.connect(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestAttempt_CanceledCallerLeavesDialToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a attempts
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		connect := func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return ctx.Err()
		}
		var first error
		var both sync.WaitGroup
		both.Go(func() { first = a.connect(hasty, connect) })
		synctest.Wait()
		if err := a.connect(t.Context(), connect); err != nil {
			t.Errorf("got %v", err)
		}
		both.Wait()
		if !unreachable(first) || !errors.Is(first, context.DeadlineExceeded) {
			t.Errorf("got %v", first)
		}
	})
}
