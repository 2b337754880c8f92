package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"
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
	// uploaded and received are in bytes.
	uploaded, received int64
	// delay is that of each reply.
	delay time.Duration
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

// Counts are all calls so far, by procedure.
func (t *Tap) Counts() map[Call]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.calls)
}

// Received is the number of bytes that libvirt has sent so far.
func (t *Tap) Received() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.received
}

// Delay has what libvirt sends on new connections arrive that much later, as from a far host.
func (t *Tap) Delay(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delay = d
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
	delay := t.delay
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
		to := io.Writer(client)
		if delay > 0 {
			slow := newLate(client, delay)
			defer close(slow.done)
			to = slow
		}
		_ = copyPackets(to, server, func(p *packet) (withBody, bool) { return t.isAfter(p, c) })
	}()
}

// late writes to a connection in order, each part that much later. Errors are ignored.
type late struct {
	delay time.Duration
	parts chan latePart
	done  chan struct{}
}

type latePart struct {
	due   time.Time
	bytes []byte
}

// maxLate is how many parts may be on their way.
const maxLate = 1 << 16

func newLate(to net.Conn, delay time.Duration) late {
	w := late{delay, make(chan latePart, maxLate), make(chan struct{})}
	go func() {
		for {
			select {
			case p := <-w.parts:
				<-time.After(time.Until(p.due))
				_, _ = to.Write(p.bytes)
			case <-w.done:
				return
			}
		}
	}()
	return w
}

func (w late) Write(p []byte) (int, error) {
	w.parts <- latePart{time.Now().Add(w.delay), bytes.Clone(p)}
	return len(p), nil
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
