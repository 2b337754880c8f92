package host

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// redialPause is how long a host that does not answer is left alone.
const redialPause = time.Second

// WaitStopped waits until a domain is off or gone. It is driven by libvirt's events; when the connection is lost, as by
// a restart of libvirtd, which guests survive, it dials until ctx ends.
func (h *Host) WaitStopped(ctx context.Context, id string) error {
	for {
		stopped, err := h.stoppedOrChanged(ctx, id)
		if !unreachable(err) {
			if stopped || err != nil {
				return err
			}
			continue
		}
		select {
		case <-time.After(redialPause):
		case <-ctx.Done():
			return err
		}
	}
}

// stoppedOrChanged is true when a domain is off or gone, and false when it runs and something has happened to it, or may
// have. It listens first, then looks, so that nothing is missed.
func (h *Host) stoppedOrChanged(ctx context.Context, id string) (stopped bool, err error) {
	changed, lost, stop, err := h.events.listen(ctx, id)
	if err != nil {
		return false, h.failed("wait for domain "+id, err)
	}
	defer stop()
	state, err := h.State(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && !state.Active {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	select {
	case <-changed:
	case <-lost:
	case <-ctx.Done():
		return false, h.failed("wait for domain "+id, context.Cause(ctx))
	}
	return false, nil
}

// watcher has a connection of its own for events only. It subscribes once per connection and never cancels the
// subscription, which kills the connection now and then; it always drains.
type watcher struct {
	uri *url.URL

	mu      sync.Mutex
	conn    *libvirt.Libvirt
	lost    chan struct{}
	waiters map[chan struct{}]string
}

// listen announces every lifecycle event of a domain on changed, until stop is called; lost is closed when no more can
// come.
func (w *watcher) listen(ctx context.Context, id string) (changed, lost <-chan struct{}, stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		if err := w.connect(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	waiter := make(chan struct{}, 1)
	w.waiters[waiter] = id
	return waiter, w.lost, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiters, waiter)
	}, nil
}

func (w *watcher) connect(ctx context.Context) error {
	var events <-chan libvirt.DomainEventLifecycleMsg
	l, err := dial(ctx, w.uri, func(l *libvirt.Libvirt) (err error) {
		events, err = l.LifecycleEvents(context.WithoutCancel(ctx))
		return err
	})
	if err != nil {
		return err
	}
	w.conn, w.lost, w.waiters = l, make(chan struct{}), map[chan struct{}]string{}
	go w.drain(l, events, w.lost)
	return nil
}

func (w *watcher) drain(l *libvirt.Libvirt, events <-chan libvirt.DomainEventLifecycleMsg, lost chan struct{}) {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				w.forget(l, lost)
				return
			}
			w.announce(uuid.UUID(e.Dom.UUID).String())
		case <-l.Disconnected():
			w.forget(l, lost)
			return
		}
	}
}

func (w *watcher) announce(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waiter, wanted := range w.waiters {
		if wanted == id {
			select {
			case waiter <- struct{}{}:
			default: // it has not looked since the last one
			}
		}
	}
}

func (w *watcher) forget(l *libvirt.Libvirt, lost chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == l {
		w.conn = nil
	}
	close(lost)
}

func (w *watcher) close() {
	w.mu.Lock()
	l := w.conn
	w.conn = nil
	w.mu.Unlock()
	if l != nil {
		_ = l.Disconnect()
	}
}
