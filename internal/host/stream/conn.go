// Package stream moves data into storage volumes and out of them, over libvirt's own protocol and a connection of its own:
// go-libvirt's streams hold the connection that all calls share, know no holes, and can't be interrupted.
package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// stallTime is how long the other end may take nothing, or tell nothing that it owes, before it is given up.
const stallTime = time.Minute

// ErrStalled is the error of a host that takes no more data.
var ErrStalled = fmt.Errorf("nothing has moved for %s", stallTime)

// Conn is a connection to libvirtd for one transfer at a time. When the context that it was opened with ends, so does it,
// at once.
type Conn struct {
	net    net.Conn
	ctx    context.Context //nolint:containedctx // it is the connection's life
	end    func() bool
	serial uint32
	// out is where packets are put together: one for each would be garbage as large as the image.
	out []byte
	// stuck is why a write was given up, which may still be under way and need out.
	stuck error
	// packets are those that concern the transfer; err is why there are no more.
	packets chan packet
	err     error
}

// Open greets the libvirtd at the other end of a connection, and opens the driver of the URI there, such as
// qemu:///system. The connection is closed in any case.
func Open(ctx context.Context, conn net.Conn, uri string) (*Conn, error) {
	c := &Conn{net: conn, ctx: ctx, packets: make(chan packet)}
	c.end = context.AfterFunc(ctx, func() { _ = conn.Close() })
	go c.receive()
	err := c.authenticate()
	if err == nil {
		var e encoder
		e.word(1)
		e.text(uri)
		e.word(0)
		_, err = c.call(procOpen, e)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection. A transfer that is not finished breaks off. Nobody waits for it: TLS
// takes leave of the other end, which may be gone.
func (c *Conn) Close() error {
	c.end()
	go func() { _ = c.net.Close() }()
	go func() {
		for range c.packets { // nobody waits for them any more
		}
	}()
	return nil
}

// receive reads until the connection ends.
func (c *Conn) receive() {
	defer close(c.packets)
	for {
		p, err := read(c.net)
		if err != nil {
			c.err = err
			return
		}
		if p.program == program {
			c.packets <- p
		}
	}
}

// The ways to prove who one is, from enum remote_auth_type. A socket that asks for a password is for libvirt's own clients.
const (
	authNone   = 0
	authPolkit = 2
)

func (c *Conn) authenticate() error {
	body, err := c.call(procAuthList, nil)
	if err != nil {
		return err
	}
	d := decoder(body)
	var offered []uint32
	n, _ := d.word()
	for range min(n, 16) {
		if way, ok := d.word(); ok {
			offered = append(offered, way)
		}
	}
	switch {
	case n == 0 || slices.Contains(offered, authNone):
		return nil
	case slices.Contains(offered, authPolkit):
		_, err := c.call(procPolkit, nil)
		return err
	}
	return errors.New("libvirt asks for a password (SASL), which is not supported")
}

// call makes a call and gives the body of its answer.
func (c *Conn) call(procedure procedure, body []byte) ([]byte, error) {
	if err := c.ask(procedure, body); err != nil {
		return nil, err
	}
	return c.answer()
}

// ask makes a call and waits for nothing.
func (c *Conn) ask(procedure procedure, body []byte) error {
	c.serial++
	return c.send(packet{procedure: procedure, kind: kindCall, serial: c.serial, body: body})
}

// answer is the body of the next packet, or the error that it carries.
func (c *Conn) answer() ([]byte, error) {
	p, err := c.next()
	if err != nil {
		return nil, err
	}
	return p.body, p.failure()
}

// part is the body of the next packet of the stream. The reply to the call that began it is none, and may come after the
// first of them: libvirtd has one thread send replies and another one send data.
func (c *Conn) part() ([]byte, error) {
	for {
		p, err := c.next()
		if err != nil {
			return nil, err
		}
		if err := p.failure(); err != nil || p.kind == kindStream {
			return p.body, err
		}
	}
}

// send writes one packet, which must move within stallTime. It waits beside the write: not every connection
// knows deadlines, or has a write end when it is closed.
func (c *Conn) send(p packet) error {
	if c.stuck != nil {
		return c.stuck
	}
	c.out = p.appendTo(c.out[:0])
	written := make(chan error, 1)
	go func() {
		_, err := c.net.Write(c.out)
		written <- err
	}()
	late := time.NewTimer(stallTime)
	defer late.Stop()
	select {
	case err := <-written:
		return c.cause(err)
	case <-c.ctx.Done():
		c.stuck = context.Cause(c.ctx)
	case <-late.C:
		c.stuck = ErrStalled
		go func() { _ = c.net.Close() }()
	}
	return c.stuck
}

// next is the next packet of the present serial number.
func (c *Conn) next() (packet, error) {
	stalled := time.NewTimer(stallTime)
	defer stalled.Stop()
	for {
		select {
		case p, ok := <-c.packets:
			if !ok {
				return packet{}, c.cause(c.err)
			}
			if p.serial == c.serial {
				return p, nil
			}
		case <-c.ctx.Done():
			return packet{}, context.Cause(c.ctx)
		case <-stalled.C:
			return packet{}, ErrStalled
		}
	}
}

// cause says why the connection failed: that it was closed here is only how its context's end shows.
func (c *Conn) cause(err error) error {
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.stuck != nil:
		return c.stuck
	}
	return fmt.Errorf("%w: %w", libvirt.ErrInterrupted, err)
}
