package host

import (
	"context"
	"sync"
	"time"
)

// attempts has all who want a connection at the same time share one attempt to make it, and its failure. A failure is
// remembered for as long as it took to show: so many calls to a host that swallows packets all fail when the first does, and one
// to a host that refuses at once is tried again at once.
type attempts struct {
	mu   sync.Mutex
	last *attempt
}

// attempt is one try to connect; err and until are there once done is closed.
type attempt struct {
	done  chan struct{}
	err   error
	until time.Time
}

// share runs connect, or waits for one that is under way. Who waits no longer leaves it to the others, so connect must end
// by itself.
func (a *attempts) share(ctx context.Context, connect func(context.Context) error) error {
	t := a.join(ctx, connect)
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return &UnreachableError{context.Cause(ctx)}
	}
}

func (a *attempts) join(ctx context.Context, connect func(context.Context) error) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && a.last.holds() {
		return a.last
	}
	t := &attempt{done: make(chan struct{})}
	a.last = t
	go func() {
		defer close(t.done)
		start := time.Now()
		t.err = connect(context.WithoutCancel(ctx))
		t.until = time.Now().Add(time.Since(start))
	}()
	return t
}

// holds tells whether an attempt is under way, or its failure is fresh.
func (t *attempt) holds() bool {
	select {
	case <-t.done:
		return t.err != nil && time.Now().Before(t.until)
	default:
		return true
	}
}
