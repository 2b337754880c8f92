// Package stream transfers data into and out of storage volumes, over libvirt's protocol and its own connection: go-libvirt's streams
// occupy the connection that all calls share, do not support holes, and can't be canceled.
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

// stallTime is how long libvirtd may read nothing, or not answer, before the transfer fails.
const stallTime = time.Minute

// ErrStalled is the error of a host that reads no more data.
var ErrStalled = fmt.Errorf("nothing has moved for %s", stallTime)

// Conn is a connection to libvirtd for one transfer at a time. It is closed as soon as the context ends with which it was opened.
type Conn struct {
	net    net.Conn
	ctx    context.Context //nolint:containedctx // it is the connection's lifetime
	end    func() bool
	serial uint32
	// out is the buffer of packets, which is reused: a buffer for each packet would be garbage as large as the image.
	out []byte
	// stuck is the error of a write that was abandoned, and may still use out.
	stuck error
	// packets are those of the transfer; err is the reason for their end.
	packets chan packet
	err     error
}

// Open initializes a connection to libvirtd, and opens the driver of the URI, such as qemu:///system. After an error the connection is
// closed.
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

// Close closes the connection, which cancels an unfinished transfer. It does so in the background, because TLS notifies the other end,
// which may be unresponsive.
func (c *Conn) Close() error {
	c.end()
	go func() { _ = c.net.Close() }()
	go func() {
		for range c.packets { // discarded
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

// The authentication types, from enum remote_auth_type. Those with a password are not supported.
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

// call makes a call and returns the body of its reply.
func (c *Conn) call(procedure procedure, body []byte) ([]byte, error) {
	if err := c.ask(procedure, body); err != nil {
		return nil, err
	}
	return c.answer()
}

// ask sends a call without waiting for its reply.
func (c *Conn) ask(procedure procedure, body []byte) error {
	c.serial++
	return c.send(packet{procedure: procedure, kind: kindCall, serial: c.serial, body: body})
}

// answer is the body of the next packet, or its error.
func (c *Conn) answer() ([]byte, error) {
	p, err := c.next()
	if err != nil {
		return nil, err
	}
	return p.body, p.failure()
}

// part is the next packet of the stream. It skips the reply to the call that began the stream, which may arrive after the first
// of them, because libvirtd sends replies and data from different threads.
func (c *Conn) part() (packet, error) {
	for {
		p, err := c.next()
		if err != nil {
			return p, err
		}
		if err := p.failure(); err != nil || p.kind == kindStream || p.kind == kindHole {
			return p, err
		}
	}
}

// send writes one packet within stallTime. It waits in another goroutine than the write, because not every connection supports deadlines,
// or ends a write when it is closed.
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

// next is the next packet with the current serial number.
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

// cause is why the connection failed. If its context has ended, that is the cause, and not that the connection is closed.
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
