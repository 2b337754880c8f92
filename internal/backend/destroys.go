package backend

import (
	"context"
	"sync"
	"time"
)

// firstDestroy is how long an apply may take to begin to destroy what it is to destroy.
const firstDestroy = 10 * time.Second

// destroys are the resources that this process is destroying. The zero value is ready to use.
type destroys struct {
	mu      sync.Mutex
	running int
	// changed is closed when one begins or ends.
	changed chan struct{}
}

func (d *destroys) add(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running += n
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

func (d *destroys) look() (running int, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.running, d.changed
}

// Destroys records that a resource is being destroyed until the returned function is called.
func (b *Backend) Destroys() (done func()) {
	b.destroys.add(1)
	return func() { b.destroys.add(-1) }
}

// RetryTaken calls create again while its error is that a name is taken and this apply destroys resources, one of which may have that name.
// Terraform does not tell what an apply will destroy.
func (b *Backend) RetryTaken(ctx context.Context, create func() (taken bool)) {
	first := time.NewTimer(firstDestroy)
	defer first.Stop()
	for again := true; create() && again; {
		running, changed := b.destroys.look()
		late := first.C
		if running > 0 {
			late = nil
		}
		select {
		case <-changed:
		case <-late:
			again = false
		case <-ctx.Done():
			again = false
		}
	}
}
