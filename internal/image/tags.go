package image

import (
	"context"
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
	mu     sync.Mutex
	digest string
}

// Resolve is Container.Resolve for the first who asks; who asks meanwhile waits for that answer. An error is not remembered.
func (t *Tags) Resolve(ctx context.Context, c Container) (digest string, err error) {
	r := t.of(tag{c.Reference, c.Username})
	r.mu.Lock()
	defer r.mu.Unlock()
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
		t.known[name] = &resolution{}
	}
	return t.known[name]
}
