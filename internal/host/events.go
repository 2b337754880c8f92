package host

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// redialPause is the pause between attempts to reach a host that does not answer.
const redialPause = time.Second

// WaitStopped waits until a domain is off or gone. A restart of libvirtd, which guests survive, does not end the wait.
func (h *Host) WaitStopped(ctx context.Context, id string) error {
	return h.Await(ctx, id, func(ctx context.Context) (bool, error) {
		state, err := h.State(ctx, id)
		if errors.Is(err, ErrNotFound) {
			return true, nil
		}
		return err == nil && !state.Active, err
	})
}

// Await waits until done is true. It calls done at first and at every event of the domain. When the connection is lost, it reconnects until
// ctx ends, and calls done again.
func (h *Host) Await(ctx context.Context, id string, done func(context.Context) (bool, error)) error {
	return h.await(ctx, id, nil, done)
}

// AwaitEvery is Await for changes without an event: it also calls done at that interval.
func (h *Host) AwaitEvery(ctx context.Context, interval time.Duration, id string, done func(context.Context) (bool, error)) error {
	tick := time.NewTicker(interval) //nolint:forbidigo // the only place for conditions without an event
	defer tick.Stop()
	return h.await(ctx, id, tick.C, done)
}

func (h *Host) await(ctx context.Context, id string, again <-chan time.Time, done func(context.Context) (bool, error)) error {
	for {
		end, err := h.doneOrChanged(ctx, id, again, done)
		if !unreachable(err) {
			if end || err != nil {
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

// doneOrChanged is true when done is, and false when the domain has changed meanwhile, or may have. It subscribes before it calls done, so
// that no event is missed.
func (h *Host) doneOrChanged(ctx context.Context, id string, again <-chan time.Time,
	done func(context.Context) (bool, error),
) (bool, error) {
	changed, lost, stop, err := h.events.listen(ctx, id)
	if err != nil {
		return false, h.failed("wait for domain "+id, err)
	}
	defer stop()
	h.forget(id) // what is waited for may have no event
	if end, err := done(ctx); end || err != nil {
		return end, err
	}
	select {
	case <-changed:
	case <-again:
	case <-lost:
	case <-ctx.Done():
		return false, h.failed("wait for domain "+id, context.Cause(ctx))
	}
	return false, nil
}

// watcher has its own connection for events only. It subscribes once per connection and never cancels the subscription, which sometimes
// breaks the connection; it always drains the events.
type watcher struct {
	uri     *url.URL
	timeout time.Duration

	attempts attempts
	mu       sync.Mutex
	conn     *conn
	closed   bool
	lost     chan struct{}
	waiters  map[chan struct{}]string
}

// listen signals every event of a domain on changed until stop is called; lost is closed when the connection has ended.
func (w *watcher) listen(ctx context.Context, id string) (changed, lost <-chan struct{}, stop func(), err error) {
	for {
		if changed, lost, stop := w.join(id); lost != nil {
			return changed, lost, stop, nil
		}
		if err := w.attempts.connect(ctx, w.connect); err != nil {
			return nil, nil, nil, err
		}
	}
}

// join is listen on the existing connection; without one, lost is nil.
func (w *watcher) join(id string) (changed, lost <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return nil, nil, nil
	}
	waiter := make(chan struct{}, 1)
	w.waiters[waiter] = id
	return waiter, w.lost, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiters, waiter)
	}
}

// eventIDs are the events that can be waited for: lifecycle, removal of a device, end of a block job, agent and balloon.
var eventIDs = []libvirt.DomainEventID{
	libvirt.DomainEventIDLifecycle, libvirt.DomainEventIDDeviceRemoved, libvirt.DomainEventIDBlockJob,
	libvirt.DomainEventIDAgentLifecycle, libvirt.DomainEventIDBalloonChange,
}

func (w *watcher) connect(ctx context.Context) error {
	var streams []<-chan any
	c, err := dial(ctx, w.uri, w.timeout, func(l *libvirt.Libvirt) (err error) {
		streams, err = pipelined(eventIDs, func(id libvirt.DomainEventID) (<-chan any, error) {
			return l.SubscribeEvents(context.WithoutCancel(ctx), id, nil)
		})
		return err
	})
	if err != nil {
		return err
	}
	lost := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		c.disconnect()
		return net.ErrClosed
	}
	w.conn, w.lost, w.waiters = c, lost, map[chan struct{}]string{}
	var ended sync.WaitGroup
	for _, events := range streams {
		ended.Go(func() {
			for e := range events { // until the connection ends
				w.announce(subject(e))
			}
		})
	}
	go func() {
		ended.Wait()
		w.forget(c, lost)
	}()
	return nil
}

// subject returns the UUID of the domain that an event is about.
func subject(event any) string {
	var d libvirt.Domain
	switch e := event.(type) {
	case *libvirt.DomainEventCallbackLifecycleMsg:
		d = e.Msg.Dom
	case *libvirt.DomainEventCallbackDeviceRemovedMsg:
		d = e.Msg.Dom
	case *libvirt.DomainEventCallbackBlockJobMsg:
		d = e.Msg.Dom
	case *libvirt.DomainEventCallbackAgentLifecycleMsg:
		d = e.Dom
	case *libvirt.DomainEventCallbackBalloonChangeMsg:
		d = e.Msg.Dom
	}
	return uuid.UUID(d.UUID).String()
}

func (w *watcher) announce(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waiter, wanted := range w.waiters {
		if wanted == id {
			select {
			case waiter <- struct{}{}:
			default: // the last signal has not been received yet
			}
		}
	}
}

func (w *watcher) forget(c *conn, lost chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == c {
		w.conn = nil
	}
	close(lost)
}

func (w *watcher) close() {
	w.mu.Lock()
	c := w.conn
	w.conn, w.closed = nil, true
	w.mu.Unlock()
	if c != nil {
		c.disconnect()
	}
}
