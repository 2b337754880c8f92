package content

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

const (
	// lease is how long a process may hold a host's mutex. A mutex that is still held after twice that time has no holder any more:
	// libvirtd crashed while it was held.
	lease = time.Minute
	// turnTime is after how long a process releases the mutex for other processes, even if its own goroutines wait for it.
	turnTime = 10 * time.Second
)

// mutex is a host's lock in this process. It stays locked while other goroutines wait for it, because acquiring it takes several calls.
type mutex struct {
	turn    chan struct{}
	waiting atomic.Int32

	uuid    string
	since   time.Time
	release func(context.Context) error
}

func (m *Creator) mutex(key string) *mutex {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mutexes == nil {
		m.mutexes = map[string]*mutex{}
	}
	if m.mutexes[key] == nil {
		m.mutexes[key] = &mutex{turn: make(chan struct{}, 1)}
	}
	return m.mutexes[key]
}

// locked calls do while it holds the host's mutex, which excludes all goroutines and processes. do must end within the lease.
func (m *Creator) locked(ctx context.Context, key string, h Host, do func(context.Context) error) error {
	x := m.mutex(key)
	x.waiting.Add(1)
	select {
	case x.turn <- struct{}{}:
		x.waiting.Add(-1)
	case <-ctx.Done():
		x.waiting.Add(-1)
		return context.Cause(ctx)
	}
	defer func() { <-x.turn }()
	if err := x.lock(ctx, h); err != nil {
		return fmt.Errorf("the mutex of host %s (the domain %s) could not be had: %w", key, domainxml.MutexName, err)
	}
	leased, cancel := context.WithDeadlineCause(ctx, x.since.Add(lease), errLeased)
	defer cancel()
	err := do(leased)
	if err != nil || x.waiting.Load() == 0 || time.Since(x.since) > turnTime {
		x.unlock(ctx)
	}
	return err
}

var errLeased = fmt.Errorf("the mutex was lost on the way: it is given for %s, and goes with the connection", lease)

// lock acquires the mutex, unless this process holds it already.
func (x *mutex) lock(ctx context.Context, h Host) error {
	if x.release != nil {
		if state, err := h.State(ctx, x.uuid); err == nil && state.Active && time.Since(x.since) < turnTime {
			return nil
		}
		x.unlock(ctx)
	}
	for tries := 0; ; tries++ {
		id := uuid.NewString()
		text, err := domainxml.BuildMutex(id)
		if err != nil {
			return err
		}
		x.uuid, x.since = id, time.Now()
		if x.release, err = h.Hold(ctx, text); err == nil {
			return nil
		}
		x.release = nil
		other, found := h.LookupByName(ctx, domainxml.MutexName)
		switch {
		case !errors.Is(err, host.ErrExists) || tries > 100:
			return err
		case errors.Is(found, host.ErrNotFound):
			continue // it has been released in between
		case found != nil:
			return found
		}
		if err := awaitOther(ctx, h, other); err != nil {
			return err
		}
	}
}

// checkHeld is an error if this process has lost the host's mutex, because it was suspended or disconnected.
func (m *Creator) checkHeld(ctx context.Context, key string, h Host) error {
	state, err := h.State(ctx, m.mutex(key).uuid)
	if errors.Is(err, host.ErrNotFound) || err == nil && !state.Active {
		return errLeased
	}
	return err
}

// awaitOther waits until another process has released the mutex, or must be dead.
func awaitOther(ctx context.Context, h Host, uuid string) error {
	waitCtx, cancel := context.WithTimeout(ctx, 2*lease)
	defer cancel()
	err := h.WaitStopped(waitCtx, uuid)
	if waitCtx.Err() == nil || ctx.Err() != nil {
		return err
	}
	if err := h.StopCopier(ctx, uuid); !errors.Is(err, host.ErrNotFound) {
		return err
	}
	return nil
}

// unlock releases the mutex, also after the operation's timeout. If the call fails, libvirtd releases it when the connection ends.
func (x *mutex) unlock(ctx context.Context) {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	_ = x.release(ctx)
	x.release = nil
}
