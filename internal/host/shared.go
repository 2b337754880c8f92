package host

import (
	"context"
	"sync"
)

// shared is a list of a host's objects. Many operations ask for it at the same time: those that ask while a list is being read share the
// next one, which shows what each of them has changed before it asked.
type shared[T any] struct {
	mu sync.Mutex
	// next is the reading that has not begun yet; nil if no caller waits for one.
	next *reading[T]
	// last is closed when the list that is being read is complete; nil before the first one.
	last chan struct{}
}

type reading[T any] struct {
	callers int
	cancel  context.CancelFunc
	done    chan struct{}
	value   T
	err     error
}

// get returns a list that read begins to read after this call. The reading ends early when none of its callers waits for it any more.
func (s *shared[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	r := s.next
	if r == nil {
		//nolint:gosec // the reading calls it at its end, or its last caller
		detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
		r = &reading[T]{cancel: cancel, done: make(chan struct{})}
		s.next = r
		go s.read(detached, r, s.last, read)
		s.last = r.done
	}
	r.callers++
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		if s.leave(r) {
			<-r.done // it ends what it has begun
		}
		return *new(T), context.Cause(ctx)
	}
}

// read waits for the end of the reading before it.
func (s *shared[T]) read(ctx context.Context, r *reading[T], before <-chan struct{}, read func(context.Context) (T, error)) {
	if before != nil {
		<-before
	}
	s.mu.Lock()
	if s.next == r {
		s.next = nil // who asks from here on may have changed what is about to be read
	}
	s.mu.Unlock()
	if ctx.Err() == nil {
		r.value, r.err = read(ctx)
	}
	close(r.done)
	r.cancel()
}

// leave reports whether it ends a reading that has begun.
func (s *shared[T]) leave(r *reading[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.callers--; r.callers > 0 {
		return false
	}
	r.cancel()
	if s.next != r {
		return true
	}
	s.next = nil
	return false
}
