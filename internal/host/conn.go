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

// lastGrace is what calls get to end that others make on a connection that was abandoned.
const lastGrace = time.Minute

// conn is a connection that several calls share. It may be abandoned while others still wait for their answers; the
// last of them closes it.
type conn struct {
	*libvirt.Libvirt

	way net.Conn

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
	// A call that never ends, as to an agent that hangs, is not to keep the connection, and ssh, for ever.
	time.AfterFunc(lastGrace, func() { _ = c.way.Close() })
}

// closeIfUnused hangs up without a word: a libvirtd that was given up may never answer one.
func (c *conn) closeIfUnused() {
	if c.abandoned && c.users == 0 {
		_ = c.way.Close()
	}
}

// disconnect tells libvirtd that the connection ends, and closes it.
func (c *conn) disconnect() {
	_ = c.Disconnect()
	_ = c.way.Close()
}

// isBroken tells whether an error of go-libvirt's is that of a connection that broke.
func isBroken(err error) bool {
	var network *net.OpError
	return errors.Is(err, libvirt.ErrInterrupted) || errors.Is(err, syscall.EINVAL) || errors.As(err, &network)
}

// explain tells why a connection broke, where that is known: go-libvirt keeps the connection's own error to itself.
func explain(way net.Conn, err error) error {
	if t, ok := way.(*tunnel); ok && isBroken(err) {
		return t.failed("run", err)
	}
	return err
}

// dialled is go-libvirt's dialer of a connection that is open already.
type dialled struct{ net.Conn }

// Dial is go-libvirt's.
func (d dialled) Dial() (net.Conn, error) { return d.Conn, nil }

// dial connects and greets within dialTimeout, or as long as ctx lasts if that is less. A connection whose greeting
// fails is closed.
func dial(ctx context.Context, uri *url.URL, greet func(*libvirt.Libvirt) error) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("no answer within %s", dialTimeout))
	defer cancel()
	way, err := connect(ctx, uri)
	if err != nil {
		return nil, &UnreachableError{causeOr(ctx, err)}
	}
	// go-libvirt's calls take no context: hanging up ends them.
	stop := context.AfterFunc(ctx, func() { _ = way.Close() })
	c := &conn{Libvirt: libvirt.NewWithDialer(dialled{way}), way: way}
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

// causeOr is why ctx has ended, which is why all else failed; or err while it lasts.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
