// Package host is libvirt: connections that are made when they are needed and kept, and the calls that virtclaim makes.
// It knows neither Terraform nor Kubernetes.
package host

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/digitalocean/go-libvirt"
)

// Host is one libvirt host. Its methods may be used at the same time.
type Host struct {
	// Key is the name that the user gave the host.
	Key string

	uri   *url.URL
	fleet *Fleet

	dialling sync.Mutex
	calls    *libvirt.Libvirt

	events watcher
}

// call runs f on the host's connection and gives its error with what was done, and where. go-libvirt's calls take no
// context: when ctx ends first, the connection is dropped, for nobody knows in which state it is.
func call[T any](ctx context.Context, h *Host, op string, f func(*libvirt.Libvirt) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	l, err := h.connection(ctx)
	if err != nil {
		return none, h.failed(op, err)
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := f(l)
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return none, h.failed(op, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		h.drop(l)
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

// connection is the host's connection, dialled on first use and again after it was lost.
func (h *Host) connection(ctx context.Context) (*libvirt.Libvirt, error) {
	h.dialling.Lock()
	defer h.dialling.Unlock()
	if h.calls != nil && h.calls.IsConnected() {
		return h.calls, nil
	}
	l, err := dial(ctx, h.uri)
	if err != nil {
		return nil, err
	}
	if err := h.fleet.meet(h.Key, h.uri, l); err != nil {
		go l.Disconnect() //nolint:errcheck // it is given up
		return nil, err
	}
	h.calls = l
	return l, nil
}

// drop gives a connection up, so that the next call dials anew.
func (h *Host) drop(l *libvirt.Libvirt) {
	h.dialling.Lock()
	defer h.dialling.Unlock()
	if h.calls == l {
		h.calls = nil
	}
	go l.Disconnect() //nolint:errcheck // it waits for a libvirtd that may never answer
}

// dial connects within dialTimeout or as long as ctx lasts, whichever is less.
func dial(ctx context.Context, uri *url.URL) (*libvirt.Libvirt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("no answer within %s", dialTimeout))
	defer cancel()
	type answer struct {
		l   *libvirt.Libvirt
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		l, err := libvirt.ConnectToURI(uri)
		answers <- answer{l, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, &UnreachableError{a.err}
		}
		return a.l, nil
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.l != nil {
				_ = a.l.Disconnect()
			}
		}()
		return nil, &UnreachableError{context.Cause(ctx)}
	}
}

// close ends the host's connections.
func (h *Host) close() {
	h.dialling.Lock()
	defer h.dialling.Unlock()
	if h.calls != nil {
		_ = h.calls.Disconnect()
		h.calls = nil
	}
	h.events.close()
}
