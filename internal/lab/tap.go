package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Call is the number of a procedure in libvirt's protocol (src/remote/remote_protocol.x).
type Call uint32

// The calls that change something on a host.
const (
	CallDomainCreate      Call = 9
	CallVolumeCreate      Call = 93
	CallVolumeDelete      Call = 94
	CallSecretDefine      Call = 142
	CallAttach            Call = 160
	CallDetach            Call = 161
	CallDomainCreateFlags Call = 196
	CallUndefine          Call = 231
	CallDestroy           Call = 234
	CallBlockPull         Call = 240
	CallBlockResize       Call = 251
	CallVolumeResize      Call = 260
	CallSetMetadata       Call = 264
	CallDefine            Call = 350
)

var callNames = map[Call]string{
	CallDomainCreate: "domain-create", CallVolumeCreate: "vol-create", CallVolumeDelete: "vol-delete", CallAttach: "attach",
	CallDetach: "detach", CallDomainCreateFlags: "domain-create-flags", CallUndefine: "undefine", CallDestroy: "destroy",
	CallBlockPull: "block-pull", CallBlockResize: "block-resize", CallVolumeResize: "vol-resize", CallSetMetadata: "set-metadata",
	CallDefine: "define", CallSecretDefine: "secret-define",
}

// Fault is what goes wrong, and when.
type Fault struct {
	// Call and Nth say at which call of which procedure, counted from 1.
	Call Call
	Nth  int
	// After lets libvirt do it, and keeps its answer back; without, libvirt never hears of it.
	After bool
	// Kill kills the client as kill -9 does; without, all its connections are cut.
	Kill bool
}

// String names the fault in a test's output.
func (f Fault) String() string {
	what, when := "cut", "before"
	if f.Kill {
		what = "kill"
	}
	if f.After {
		when = "after"
	}
	return fmt.Sprintf("%s-%s-%s-%d", what, when, callNames[f.Call], f.Nth)
}

// Tap stands between clients and a host's libvirtd, and has one of the clients' calls fail.
type Tap struct {
	// URI is libvirt's, through the tap.
	URI string

	host     *Host
	listener net.Listener

	mu    sync.Mutex
	fault *Fault
	seen  int
	fired bool
	open  map[net.Conn]bool
}

// NewTap makes a tap before a host. dir is a folder for its socket.
func NewTap(ctx context.Context, h *Host, dir string) (*Tap, error) {
	path := filepath.Join(dir, "tap")
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket %s is too long", path)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	t := &Tap{host: h, listener: listener, open: map[net.Conn]bool{}}
	t.URI = "qemu:///system?socket=" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
	go t.serve(ctx)
	return t, nil
}

// Arm has a fault happen once, from now on.
func (t *Tap) Arm(f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.seen, t.fired = &f, 0, false
}

// Fired tells whether the fault has happened since Arm.
func (t *Tap) Fired() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fired
}

// Close ends the tap and all that goes through it.
func (t *Tap) Close() error {
	err := t.listener.Close()
	t.cut()
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

// pass lets packets through in both directions until one of them ends.
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
	awaited := &answer{}
	go func() {
		defer end()
		t.copy(server, client, func(p packet) bool { return t.isBefore(p, client, awaited) })
	}()
	go func() {
		defer end()
		t.copy(client, server, func(p packet) bool { return t.isAfter(p, client, awaited) })
	}()
}

// answer is the serial number of a call whose answer is to be kept back.
type answer struct {
	sync.Mutex
	serial uint32
	wanted bool
}

// packet is one of libvirt's protocol, with its length.
type packet []byte

const (
	remoteProgram = 0x20008086
	typeCall      = 0
	typeReply     = 1
)

func (p packet) word(n int) uint32 { return binary.BigEndian.Uint32(p[4*n:]) }
func (p packet) program() uint32   { return p.word(1) }
func (p packet) call() Call        { return Call(p.word(3)) }
func (p packet) kind() uint32      { return p.word(4) }
func (p packet) serial() uint32    { return p.word(5) }

// copy passes packets on until faulty says that one is not to be.
func (t *Tap) copy(to io.Writer, from io.Reader, faulty func(packet) bool) {
	for {
		p, err := readPacket(from)
		if err != nil || faulty(p) {
			return
		}
		if _, err := to.Write(p); err != nil {
			return
		}
	}
}

func readPacket(r io.Reader) (packet, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < 28 || n > 64<<20 {
		return nil, errors.New("not a packet of libvirt's")
	}
	p := make(packet, n)
	copy(p, length[:])
	_, err := io.ReadFull(r, p[4:])
	return p, err
}

// isBefore tells whether a call must not reach libvirt.
func (t *Tap) isBefore(p packet, client *net.UnixConn, awaited *answer) bool {
	if p.program() != remoteProgram || p.kind() != typeCall {
		return false
	}
	t.mu.Lock()
	f := t.fault
	hit := f != nil && !t.fired && p.call() == f.Call
	if hit {
		t.seen++
		hit = t.seen == f.Nth
		t.fired = hit
	}
	t.mu.Unlock()
	if !hit {
		return false
	}
	if f.After {
		awaited.Lock()
		awaited.serial, awaited.wanted = p.serial(), true
		awaited.Unlock()
		return false
	}
	t.strike(f, client)
	return true
}

// isAfter tells whether an answer must not reach the client.
func (t *Tap) isAfter(p packet, client *net.UnixConn, awaited *answer) bool {
	awaited.Lock()
	hit := awaited.wanted && p.program() == remoteProgram && p.kind() == typeReply && p.serial() == awaited.serial
	awaited.Unlock()
	if hit {
		t.mu.Lock()
		f := t.fault
		t.mu.Unlock()
		t.strike(f, client)
	}
	return hit
}

// strike kills the client or cuts its connections.
func (t *Tap) strike(f *Fault, client *net.UnixConn) {
	if f.Kill {
		if pid, err := peer(client); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	t.cut()
}

// peer is the process at the other end of a unix socket.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	controlErr := raw.Control(func(fd uintptr) {
		credentials, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, controlErr); err != nil {
		return 0, err
	}
	return int(credentials.Pid), nil
}
