package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// lastGrace is how long other calls on an abandoned connection may take to end.
const lastGrace = time.Minute

// conn is a connection that several calls share. It may be abandoned while calls still wait for their answers; the last of them closes it.
type conn struct {
	*libvirt.Libvirt

	way net.Conn
	// definitions are kept for the lists of domains.
	definitions definitions

	mu        sync.Mutex
	users     int
	abandoned bool
}

func (c *conn) use() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
}

func (c *conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	c.closeIfUnused()
}

func (c *conn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	c.closeIfUnused()
	// A call that never ends, such as one to an agent that hangs, must not keep the connection, and ssh, forever.
	time.AfterFunc(lastGrace, func() { _ = c.way.Close() })
}

// closeIfUnused closes the connection without libvirt's closing call, which an unresponsive libvirtd may never answer.
func (c *conn) closeIfUnused() {
	if c.abandoned && c.users == 0 {
		_ = c.way.Close()
	}
}

// disconnect closes the connection with libvirt's closing call.
func (c *conn) disconnect() {
	_ = c.Disconnect()
	_ = c.way.Close()
}

// isBroken reports whether an error of go-libvirt means that the connection broke.
func isBroken(err error) bool {
	var network *net.OpError
	return errors.Is(err, libvirt.ErrInterrupted) || errors.Is(err, syscall.EINVAL) || errors.As(err, &network)
}

// explain returns why a connection broke, if that is known: go-libvirt does not return the connection's own error.
func explain(way net.Conn, err error) error {
	if t, ok := way.(*tunnel); ok && isBroken(err) {
		return t.failed("run", err)
	}
	return err
}

// dialled is a dialer for go-libvirt that returns an open connection.
type dialled struct{ net.Conn }

// Dial implements go-libvirt's dialer.
func (d dialled) Dial() (net.Conn, error) { return d.Conn, nil }

// dial connects and calls greet within the timeout, or the deadline of ctx if that is earlier. If greet fails, the connection is closed.
func dial(ctx context.Context, uri *url.URL, timeout time.Duration, greet func(*libvirt.Libvirt) error) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s (connect_timeout of the host)", timeout))
	defer cancel()
	return retryStartup(ctx, func() (*conn, error) { return dialOnce(ctx, uri, greet) })
}

func dialOnce(ctx context.Context, uri *url.URL, greet func(*libvirt.Libvirt) error) (*conn, error) {
	way, err := connect(ctx, uri)
	if err != nil {
		return nil, &UnreachableError{causeOr(ctx, err)}
	}
	// go-libvirt's calls take no context: closing the connection ends them.
	stop := context.AfterFunc(ctx, func() { _ = way.Close() })
	c := &conn{way: way}
	c.Libvirt = libvirt.NewWithDialer(dialled{&wire{Conn: way, changed: c.definitions.drop, unclear: c.definitions.dropAll}})
	if err = c.ConnectToURI(libvirt.RemoteURI(uri)); err != nil {
		err = &UnreachableError{causeOr(ctx, explain(way, err))}
	} else if err = greet(c.Libvirt); err != nil {
		err = explain(way, err)
	}
	if !stop() {
		err = &UnreachableError{context.Cause(ctx)}
	}
	if err != nil {
		_ = way.Close()
		return nil, err
	}
	return c, nil
}

// causeOr is the cause of ctx if it has ended, because other errors follow from that; otherwise err.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
