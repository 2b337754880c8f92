// Package host is libvirt: connections that are made when they are needed and kept, and the calls that virtclaim makes.
// It knows neither Terraform nor Kubernetes.
package host

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/digitalocean/go-libvirt"
)

// Host is one libvirt host. Its methods may be used at the same time.
type Host struct {
	// Key is the name that the user gave the host.
	Key string

	uri   *url.URL
	fleet *Registry

	attempts attempts
	mu       sync.Mutex
	calls    *conn
	closed   bool

	events watcher
	heads  oneStream

	able   sync.Map // of DomainCapabilities by Hardware
	silent atomic.Bool
	// folders has the pools of InFolder one user each; unmounting is held while one is about to unmount. hidesMounts tells that
	// the host's storage daemon has mounts of its own, which are not to become more.
	folders     keyedLock
	unmounting  sync.Mutex
	hidesMounts atomic.Bool
}

// call runs f on the host's connection and gives its error with what was done, and where. go-libvirt's calls take no
// context: when ctx ends first, f goes on behind the scenes, and the connection is abandoned, since nobody knows whether
// the other end still lives.
func call[T any](ctx context.Context, h *Host, op string, f func(*libvirt.Libvirt) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	c, err := h.connection(ctx)
	if err != nil {
		return none, h.failed(op, err)
	}
	answers := make(chan answer, 1)
	go func() {
		defer c.release()
		value, err := f(c.Libvirt)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return none, h.failed(op, explain(c.way, a.err))
		}
		return a.value, nil
	case <-ctx.Done():
		h.abandon(c)
		return none, h.failed(op, context.Cause(ctx))
	}
}

// do is call for what has no answer.
func do(ctx context.Context, h *Host, op string, f func(*libvirt.Libvirt) error) error {
	_, err := call(ctx, h, op, func(l *libvirt.Libvirt) (struct{}, error) { return struct{}{}, f(l) })
	return err
}

func (h *Host) failed(op string, err error) error {
	return &Error{Host: h.Key, URI: h.uri.Redacted(), Op: op, Err: typed(err)}
}

// connection is the host's connection, dialled on first use and again after it was lost. It must be released.
func (h *Host) connection(ctx context.Context) (*conn, error) {
	for {
		if c := h.connected(); c != nil {
			return c, nil
		}
		if err := h.attempts.share(ctx, h.dial); err != nil {
			return nil, err
		}
	}
}

// connected is the connection if there is one, used once more.
func (h *Host) connected() *conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil || !h.calls.IsConnected() {
		return nil
	}
	h.calls.use()
	return h.calls
}

func (h *Host) dial(ctx context.Context) error {
	c, err := dial(ctx, h.uri, func(l *libvirt.Libvirt) error { return h.fleet.meet(h.Key, h.uri, l) })
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		c.disconnect()
		return net.ErrClosed
	}
	h.calls = c
	return nil
}

// abandon gives a connection up, so that the next call dials anew.
func (h *Host) abandon(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == c {
		h.calls = nil
	}
	c.abandon()
}

// close ends the host's connections.
func (h *Host) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.calls != nil {
		h.calls.disconnect()
		h.calls = nil
	}
	h.events.close()
	h.heads.close()
}
