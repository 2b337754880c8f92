package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// forward passes connections to an address of the machine on to a server on loopback, at the same port.
type forward struct {
	net.Listener
	to string

	mu   sync.Mutex
	open map[net.Conn]bool // nil once it is closed
}

// newForward listens on address for a server on loopback, which may start later.
func newForward(ctx context.Context, address netip.Addr, to string) (*forward, error) {
	_, port, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	f := &forward{to: to, open: map[net.Conn]bool{}}
	if f.Listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address.String(), port)); err != nil {
		return nil, fmt.Errorf("pass %s on to a node: %w", to, err)
	}
	go f.serve(context.WithoutCancel(ctx))
	return f, nil
}

func (f *forward) serve(ctx context.Context) {
	for {
		client, err := f.Accept()
		if err != nil {
			return // it was closed
		}
		go f.pass(ctx, client)
	}
}

// pass copies in both directions, and ends with the first one that ends: the protocols that are passed on end no single direction.
func (f *forward) pass(ctx context.Context, client net.Conn) {
	defer f.disconnect(client)
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.to)
	if err != nil {
		return
	}
	defer f.disconnect(server)
	if !f.note(client) || !f.note(server) {
		return
	}
	ended := make(chan struct{}, 2)
	for to, from := range map[net.Conn]net.Conn{client: server, server: client} {
		go func() {
			_, _ = io.Copy(to, from)
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (f *forward) note(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open != nil {
		f.open[conn] = true
	}
	return f.open != nil
}

func (f *forward) disconnect(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, conn)
	_ = conn.Close()
}

// Close ends the open connections, too.
func (f *forward) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.open {
		_ = conn.Close()
	}
	f.open = nil
	return f.Listener.Close()
}
