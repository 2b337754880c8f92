// Package iscsi is an iSCSI target (RFC 7143) that serves disks to QEMU and libvirt: one connection per session, no digests, CHAP.
package iscsi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Disk is what a LUN reads.
type Disk interface {
	io.ReaderAt
	// Size is in bytes, a multiple of BlockSize. It may grow.
	Size() int64
}

// Writable is a disk that can be written.
type Writable interface {
	Disk
	io.WriterAt
	Sync() error
	// Zero has a range read as zeros, without space for it where that can be.
	Zero(off, n int64) error
}

// Sparse is a disk that knows its holes.
type Sparse interface {
	// Extent is whether there is data at an offset, and up to where that is so.
	Extent(off int64) (isData bool, end int64)
}

// LUN is a disk as initiators see it.
type LUN struct {
	Disk Disk
	// ReadOnly protects a disk that is Writable.
	ReadOnly bool
	// Serial is at most 200 bytes of ASCII; by default the target's name and the number.
	Serial string
}

// unit is a LUN that is served.
type unit struct {
	LUN
	number   uint16
	writable Writable
	// users are what uses the disk. There are no more when it is gone.
	users sync.WaitGroup
	gone  bool
}

// Target serves LUNs.
type Target struct {
	// Name is an iSCSI qualified name.
	Name string
	// CHAP is who may log in; anyone if it is nil.
	CHAP *Credentials
	// Mutual is what the target answers to initiators that want to know whether it is the right one.
	Mutual *Credentials
	// Initiators are the names that may log in; any if there are none. A name is no secret: CHAP is what keeps others out.
	Initiators []string
	// MaxSessions is 64 by default.
	MaxSessions int
	// Log takes errors of disks, and what ended sessions. May be nil.
	Log func(error)

	// large is how many large buffers the sessions have.
	large    atomic.Int32
	mu       sync.Mutex
	units    map[uint16]*unit
	sessions map[sessionKey]*session
	// logins are the connections that have not logged in, the oldest first.
	logins []net.Conn
}

// Add serves a LUN.
func (t *Target) Add(number uint16, lun LUN) error {
	if lun.Serial == "" {
		lun.Serial = fmt.Sprintf("%.190s-%d", t.Name, number)
	}
	size := lun.Disk.Size()
	switch {
	case number > MaxLUN:
		return fmt.Errorf("LUN %d: the highest number is %d", number, MaxLUN)
	case len(lun.Serial) > 200:
		return fmt.Errorf("LUN %d: the serial has more than 200 bytes. Use a shorter one", number)
	case size <= 0 || size%BlockSize != 0:
		return fmt.Errorf("LUN %d: its size of %d bytes is no multiple of %d. Let the disk end with a whole block", number, size, BlockSize)
	}
	u := &unit{LUN: lun, number: number}
	if w, ok := lun.Disk.(Writable); ok && !lun.ReadOnly {
		u.writable = w
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.units[number] != nil {
		return fmt.Errorf("LUN %d is served already. Remove it first", number)
	}
	if t.units == nil {
		t.units = map[uint16]*unit{}
	}
	t.units[number] = u
	return nil
}

// Remove stops serving a LUN. When it returns, nothing uses the disk any more.
func (t *Target) Remove(number uint16) {
	t.mu.Lock()
	u := t.units[number]
	delete(t.units, number)
	if u != nil {
		u.gone = true
	}
	t.mu.Unlock()
	if u != nil {
		u.users.Wait()
	}
}

// Grown has each session told once that the disk of a LUN has grown.
func (t *Target) Grown(number uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sessions {
		if s.grown == nil {
			s.grown = map[uint16]bool{}
		}
		s.grown[number] = true
	}
}

// tells is whether a command is answered with the news that the LUN has grown, instead of being done (SAM, unit attention).
func (t *Target) tells(s *session, number uint16, opcode byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	isAfter := !s.grown[number] || opcode == opInquiry || opcode == opReportLUNs || opcode == opRequestSense
	if !isAfter {
		delete(s.grown, number)
	}
	return !isAfter
}

// use is the LUN of that number, or nil. It stays until users.Done.
func (t *Target) use(number uint16) *unit {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.units[number]
	if u != nil {
		u.users.Add(1)
	}
	return u
}

func (t *Target) reuse(u *unit) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !u.gone {
		u.users.Add(1)
	}
	return !u.gone
}

func (t *Target) has(number uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.units[number] != nil
}

func (t *Target) numbers() []uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.units))
}

func (t *Target) log(err error) {
	if t.Log != nil {
		t.Log(err)
	}
}

func (t *Target) validate() error {
	switch {
	case t.Name == "" || len(t.Name) > 223:
		return errors.New("the name of an iSCSI target has 1 to 223 bytes")
	case t.CHAP == nil && t.Mutual != nil:
		return errors.New("mutual CHAP needs CHAP. Give credentials of initiators, too")
	case t.CHAP != nil && (t.CHAP.User == "" || t.CHAP.Secret == ""), t.Mutual != nil && (t.Mutual.User == "" || t.Mutual.Secret == ""):
		return errors.New("the user or the secret of CHAP is empty")
	case t.Mutual != nil && t.Mutual.Secret == t.CHAP.Secret:
		return errors.New("both directions of CHAP have the same secret. Use another one for each (RFC 7143, section 9.2.1)")
	}
	return nil
}

func (t *Target) maxSessions() int {
	if t.MaxSessions > 0 {
		return t.MaxSessions
	}
	return 64
}

// Serve accepts initiators until the context ends or the listener fails. When it returns, all connections are closed.
func (t *Target) Serve(ctx context.Context, l net.Listener) error {
	if err := t.validate(); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop()
	for {
		conn, err := l.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accept initiators at %s: %w", l.Addr(), err)
		}
		connections.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			if err := t.serve(conn); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
				t.log(fmt.Errorf("initiator at %s: %w", conn.RemoteAddr(), err))
			}
		})
	}
}

func (t *Target) serve(conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	t.beginLogin(conn)
	s := newSession(t, conn)
	_ = conn.SetReadDeadline(time.Now().Add(loginTime)) // that of a closed connection fails, and so does what follows
	err := s.login()
	t.endLogin(conn)
	defer t.leave(s)
	if err != nil {
		return err
	}
	_ = conn.SetReadDeadline(time.Time{})
	return s.serve()
}

// beginLogin registers a connection that has not logged in. When there are too many, the oldest is closed, so that connections that send no
// login don't prevent others from logging in.
func (t *Target) beginLogin(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.logins) >= t.maxSessions() {
		_ = t.logins[0].Close()
		t.logins = t.logins[1:]
	}
	t.logins = append(t.logins, conn)
}

func (t *Target) endLogin(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logins = slices.DeleteFunc(t.logins, func(c net.Conn) bool { return c == conn })
}

// admit makes the session one of the target's, in the place of a former one with its name, whose commands are complete then.
func (t *Target) admit(s *session) error {
	for {
		t.mu.Lock()
		old := t.sessions[s.key]
		if old == nil {
			defer t.mu.Unlock()
			if len(t.sessions) >= t.maxSessions() {
				return outOfResources(t.maxSessions())
			}
			if t.sessions == nil {
				t.sessions = map[sessionKey]*session{}
			}
			t.sessions[s.key] = s
			return nil
		}
		t.mu.Unlock()
		_ = old.conn.Close()
		<-old.done
	}
}

func (t *Target) leave(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessions[s.key] == s {
		delete(t.sessions, s.key)
	}
	close(s.done)
}
