package host

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/digitalocean/go-libvirt"
)

// conn is a connection that several calls share. It may be abandoned while others still wait for their answers; the
// last of them closes it.
type conn struct {
	*libvirt.Libvirt

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
}

func (c *conn) closeIfUnused() {
	if c.abandoned && c.users == 0 {
		go c.Disconnect() //nolint:errcheck // it waits for a libvirtd that may never answer
	}
}

// dial connects and greets within dialTimeout, or as long as ctx lasts if that is less. A connection whose greeting
// fails is closed.
func dial(ctx context.Context, uri *url.URL, greet func(*libvirt.Libvirt) error) (*libvirt.Libvirt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, fmt.Errorf("no answer within %s", dialTimeout))
	defer cancel()
	type answer struct {
		l   *libvirt.Libvirt
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		d, err := dialer(uri)
		l := libvirt.NewWithDialer(d)
		if err == nil {
			err = l.ConnectToURI(libvirt.RemoteURI(uri))
		}
		if err != nil {
			answers <- answer{nil, &UnreachableError{err}}
			return
		}
		if err := greet(l); err != nil {
			go l.Disconnect() //nolint:errcheck // it is given up
			answers <- answer{nil, err}
			return
		}
		answers <- answer{l, nil}
	}()
	select {
	case a := <-answers:
		return a.l, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.l != nil {
				_ = a.l.Disconnect()
			}
		}()
		return nil, &UnreachableError{context.Cause(ctx)}
	}
}
