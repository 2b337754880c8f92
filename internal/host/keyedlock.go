package host

import (
	"context"
	"sync"
)

// keyedLock is a lock for each key. The zero value has them all free.
type keyedLock struct{ held sync.Map }

func (k *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	slot, _ := k.held.LoadOrStore(key, make(chan struct{}, 1))
	held := slot.(chan struct{}) //nolint:forcetypeassert // nothing else is stored
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
