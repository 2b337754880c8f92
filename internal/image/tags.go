package image

import (
	"context"
	"fmt"
	"sync"
)

// Tags remembers what tags stand for, so that all that is made at one time is made of the same image, and the registry is asked
// once. The zero value is ready; it may be used by many at a time.
type Tags struct {
	mu    sync.Mutex
	known map[tag]*resolution
}

type tag struct{ reference, username string }

type resolution struct {
	// turn is held by who asks. A registry may take long, and a mutex could not be given up meanwhile.
	turn   chan struct{}
	digest string
}

// Resolve is Container.Resolve for the first who asks; who asks meanwhile waits for that answer, as long as ctx lasts. An error is
// not remembered.
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
