package host

import (
	"context"
	"sync"
	"time"
)

// attempts shares one attempt to connect, and its failure, among concurrent calls. A failure is remembered for as long as it took: many
// calls to a host that drops packets fail together with the first one, and a host that refuses at once is tried again at once.
type attempts struct {
	mu   sync.Mutex
	last *attempt
}

// attempt is one attempt to connect; err and until are set when done is closed.
type attempt struct {
	done  chan struct{}
	err   error
	until time.Time
}

// connect runs connect, or waits for a running attempt. A caller whose context ends does not stop the attempt, because others may wait for
// it: connect must end by itself.
func (a *attempts) connect(ctx context.Context, connect func(context.Context) error) error {
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

// holds reports whether an attempt is running, or its failure is still remembered.
func (t *attempt) holds() bool {
	select {
	case <-t.done:
		return t.err != nil && time.Now().Before(t.until)
	default:
		return true
	}
}
