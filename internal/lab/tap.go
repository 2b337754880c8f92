package lab

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
)

// Tap is a proxy between clients and a host's libvirtd that makes one of the clients' calls fail.
type Tap struct {
	// URI is libvirt's, through the tap.
	URI string

	host     *Host
	listener net.Listener

	mu    sync.Mutex
	fault *Fault
	seen  int
	fired bool
	// released is closed when what the fault holds may pass.
	released chan struct{}
	open     map[net.Conn]bool
	calls    map[Call]int
	// uploaded is in bytes.
	uploaded int64
}

// NewTap creates a tap in front of a host. dir is a folder for its socket.
func NewTap(ctx context.Context, h *Host, dir string) (*Tap, error) {
	path := filepath.Join(dir, "tap")
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket %s is too long", path)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	t := &Tap{host: h, listener: listener, open: map[net.Conn]bool{}, calls: map[Call]int{}, released: make(chan struct{})}
	t.URI = "qemu:///system?socket=" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
	go t.serve(ctx)
	return t, nil
}

// Arm schedules a fault, which happens once. What the one before it held is released.
func (t *Tap) Arm(f Fault) {
	t.Release()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.seen, t.fired, t.released = &f, 0, false, make(chan struct{})
}

// Release lets what the fault holds pass, now and later.
func (t *Tap) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.released:
	default:
		close(t.released)
	}
}

// Fired reports whether the fault has happened since Arm; if it holds something, whether that has come.
func (t *Tap) Fired() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fired
}

// Calls is the number of calls of a procedure that were forwarded to libvirt since the tap was created, whatever their results.
func (t *Tap) Calls(c Call) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[c]
}

// Uploaded is the number of bytes of uploads' data that were forwarded to libvirt since the tap was created: on the wire, so with the
// packets' headers of 28 bytes, and with holes, of 40 each.
func (t *Tap) Uploaded() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uploaded
}

// Close ends the tap and all connections through it.
func (t *Tap) Close() error {
	err := t.listener.Close()
	t.cut()
	t.Release()
	return err
}

func (t *Tap) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.open {
		_ = c.Close()
	}
}

func (t *Tap) serve(ctx context.Context) {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "unix", t.host.socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		t.pass(client.(*net.UnixConn), server)
	}
}

// pass forwards packets in both directions until one of them ends.
func (t *Tap) pass(client *net.UnixConn, server net.Conn) {
	t.mu.Lock()
	t.open[client], t.open[server] = true, true
	t.mu.Unlock()
	end := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		_, _ = client.Close(), server.Close()
		delete(t.open, client)
		delete(t.open, server)
	}
	c := &tapped{client: client}
	go func() {
		defer end()
		_ = copyPackets(server, client, func(p *packet) (withBody, bool) { return t.isBefore(p, c) }) // both ends see it
	}()
	go func() {
		defer end()
		_ = copyPackets(client, server, func(p *packet) (withBody, bool) { return t.isAfter(p, c) })
	}()
}

// tapped is a connection through the tap.
type tapped struct {
	client *net.UnixConn
	// awaited and upload are what a fault waits for on this connection; Tap.mu guards them.
	awaited *awaited
	upload  *upload
}

// awaited is a call whose reply is to be dropped, held or changed.
type awaited struct {
	fault    *Fault
	serial   uint32
	released <-chan struct{}
}

// upload is an upload that is to fail in the middle.
type upload struct {
	fault  *Fault
	serial uint32
	// passed is in bytes of data.
	passed int64
}
