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
)

const (
	// lease is how long whoever has a host's mutex may work before it must give it back. One that has not gone after twice
	// that is nobody's any more: libvirtd crashed under it.
	lease = time.Minute
	// turnTime is after how long a process lets others have it, even if it could go on.
	turnTime = 10 * time.Second
)

// mutex is a host's, as this process has it. It is kept while others of this process wait for it, for it takes a moment to
// be had.
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

// locked does something while nobody else, in this process or another, has the host's mutex. It must not take long.
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

// lock makes the mutex this process's, if it is not yet.
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
			continue // it has just been given back
		case found != nil:
			return found
		}
		if err := awaitOther(ctx, h, other); err != nil {
			return err
		}
	}
}

// checkHeld is an error when this process has lost the host's mutex while it worked: it was asleep, or cut off.
func (m *Creator) checkHeld(ctx context.Context, key string, h Host) error {
	state, err := h.State(ctx, m.mutex(key).uuid)
	if errors.Is(err, host.ErrNotFound) || err == nil && !state.Active {
		return errLeased
	}
	return err
}

// awaitOther waits until another one has given the mutex back, or can't be alive any more.
func awaitOther(ctx context.Context, h Host, uuid string) error {
	patient, cancel := context.WithTimeout(ctx, 2*lease)
	defer cancel()
	err := h.WaitStopped(patient, uuid)
	if patient.Err() == nil || ctx.Err() != nil {
		return err
	}
	if err := h.StopCopier(ctx, uuid); !errors.Is(err, host.ErrNotFound) {
		return err
	}
	return nil
}

// unlock lets others have the mutex, also when the operation's time is over. Where that can't be said to libvirtd, the end of
// the connection says it.
func (x *mutex) unlock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_ = x.release(ctx)
	x.release = nil
}
