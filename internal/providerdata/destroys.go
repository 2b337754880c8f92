package providerdata

import (
	"context"
	"time"
)

// firstDestroy is how long an apply may take to begin to destroy what it is to destroy.
const firstDestroy = 10 * time.Second

// Destroys records that a resource is being destroyed until the returned function is called.
func (d *Data) Destroys() (done func()) {
	d.destroying.Add(1)
	return func() { d.destroying.Add(-1) }
}

// Releases returns what reports, from now on, whether this apply may still release what others have.
func (d *Data) Releases() func() bool {
	began := time.Now()
	return func() bool { return d.destroying.Load() > 0 || time.Since(began) < firstDestroy }
}

// RetryTaken calls create again, each second, while its error is that a name is taken and this apply destroys resources, one of which may
// have that name. Terraform does not tell what an apply will destroy, and libvirt has no event for the end of a volume.
func (d *Data) RetryTaken(ctx context.Context, create func() (taken bool)) {
	for releases := d.Releases(); ; {
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
