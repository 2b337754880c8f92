// Package host has the connections to libvirt, which are opened lazily and kept, and the calls that virtclaim makes. It depends neither on
// Terraform nor on Kubernetes.
package host

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// Host is one libvirt host. Its methods may be called concurrently.
type Host struct {
	// Key is the host's name in the provider configuration.
	Key string

	uri      *url.URL
	timeout  time.Duration
	registry *Registry

	attempts attempts
	mu       sync.Mutex
	calls    *conn
	closed   bool

	events watcher
	heads  oneStream
	// domains, devices, overlays, by pool known, and measures, by what is measured, are what concurrent operations share.
	domains  shared[[]Domain]
	devices  shared[[]NodeDevice]
	overlays shared[[]StorageVolume]
	known    sync.Map
	measures sync.Map
	// pools are storage pools by name.
	pools sync.Map

	able         sync.Map // DomainCapabilities by Hardware
	unresponsive atomic.Bool
	// folders serializes the users of each temporary pool over files of tenants; unmounting is held during an unmount. hidesMounts tells
	// that the host's storage daemon has its own mount namespace, in which nothing more must be mounted; showsMounts that an inspection has
	// seen a mount.
	folders     keyedLock
	unmounting  sync.Mutex
	hidesMounts atomic.Bool
	showsMounts atomic.Bool
}

// call runs f on the host's connection and wraps its error with the operation and the host. go-libvirt's calls take no context: if ctx ends
// first, f continues in the background, and the connection is abandoned, because the host may be unresponsive.
func call[T any](ctx context.Context, h *Host, op string, f func(*libvirt.Libvirt) (T, error)) (T, error) {
	return callOn(ctx, h, op, func(c *conn) (T, error) { return f(c.Libvirt) })
}

// callOn is call with what is kept on the connection.
func callOn[T any](ctx context.Context, h *Host, op string, f func(*conn) (T, error)) (T, error) {
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
		value, err := f(c)
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

// do is call for functions without a result.
func do(ctx context.Context, h *Host, op string, f func(*libvirt.Libvirt) error) error {
	_, err := call(ctx, h, op, func(l *libvirt.Libvirt) (struct{}, error) { return struct{}{}, f(l) })
	return err
}

func (h *Host) failed(op string, err error) error {
	return &Error{Host: h.Key, URI: h.uri.Redacted(), Op: op, Err: typed(err)}
}

// connection returns the host's connection, which is opened on first use and again after it was lost. It must be released.
func (h *Host) connection(ctx context.Context) (*conn, error) {
	for {
		if c := h.connected(); c != nil {
			return c, nil
		}
		if err := h.attempts.connect(ctx, h.dial); err != nil {
			return nil, err
		}
	}
}

// connected returns the open connection, with one more user; nil without one.
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
	c, err := dial(ctx, h.uri, h.timeout, func(l *libvirt.Libvirt) error { return h.registry.meet(h.Key, h.uri, l) })
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

// forget has the next list read the definitions of a domain again.
func (h *Host) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, err := domain(id); err == nil && h.calls != nil {
		h.calls.definitions.domains.drop(d.UUID)
	}
}

// abandon removes a connection, so that the next call opens a new one.
func (h *Host) abandon(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == c {
		h.calls = nil
	}
	c.abandon()
}

// close closes the host's connections.
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
