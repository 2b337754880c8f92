package backend

import (
	"context"
	"time"
)

// firstDestroy is how long an apply may take to begin to destroy what it is to destroy.
const firstDestroy = 10 * time.Second

// Destroys records that a resource is being destroyed until the returned function is called.
func (b *Backend) Destroys() (done func()) {
	b.destroying.Add(1)
	return func() { b.destroying.Add(-1) }
}

// Releases returns what reports, from now on, whether this apply may still release what others have.
func (b *Backend) Releases() func() bool {
	began := time.Now()
	return func() bool { return b.destroying.Load() > 0 || time.Since(began) < firstDestroy }
}

// RetryTaken calls create again, each second, while its error is that a name is taken and this apply destroys resources, one of which may have that
// name. Terraform does not tell what an apply will destroy, and libvirt has no event for the end of a volume.
func (b *Backend) RetryTaken(ctx context.Context, create func() (taken bool)) {
	for releases := b.Releases(); ; {
		last := !releases()
		if !create() || last || ctx.Err() != nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}
