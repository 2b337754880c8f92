package host

import (
	"context"
	"sync"
)

// keyedLock is a lock for each key. In the zero value all are unlocked.
type keyedLock struct{ held sync.Map }

func (k *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	slot, _ := k.held.LoadOrStore(key, make(chan struct{}, 1))
	held := slot.(chan struct{}) //nolint:forcetypeassert // no other type is stored
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
