package image

import (
	"context"
	"fmt"
	"sync"
)

// Tags caches the digests of tags, so that all disks of one run are created from the same image, and the registry is queried once. The zero
// value is ready for use, also concurrently.
type Tags struct {
	mu    sync.Mutex
	known map[tag]*resolution
}

type tag struct{ reference, username string }

type resolution struct {
	// turn is held during a query. It is not a mutex, because a registry may take long, and waiting for it must end with the context.
	turn   chan struct{}
	digest string
}

// Resolve is Container.Resolve for the first caller; concurrent callers wait for its answer, as long as ctx lasts. An error is not cached.
func (t *Tags) Resolve(ctx context.Context, c Container) (digest string, err error) {
	r := t.of(tag{c.Reference, c.Username})
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for what %s stands for: %w", c.Reference, context.Cause(ctx))
	}
	if r.digest == "" {
		r.digest, err = c.Resolve(ctx)
	}
	return r.digest, err
}

func (t *Tags) of(name tag) *resolution {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[tag]*resolution{}
	}
	if t.known[name] == nil {
		t.known[name] = &resolution{turn: make(chan struct{}, 1)}
	}
	return t.known[name]
}
