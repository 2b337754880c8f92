package iscsi

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// window is how many commands a session has at most.
	window = 32
	// workers is how many of them read or flush at the same time.
	workers = 16
	// loginTime is what a login may take.
	loginTime = 15 * time.Second
	// sendTime is how long an initiator may leave its answers unread, and how long it may keep a buffer of the target waiting for data.
	sendTime = time.Minute
)

// sessionKey names a session: a later one with the same name replaces it (RFC 7143, section 6.3.5).
type sessionKey struct {
	initiator string
	isid      [6]byte
	discovery bool
}

// session is a session with its only connection. One goroutine reads what comes, and hands what may take time to workers.
type session struct {
	target *Target
	conn   net.Conn
	in     *bufio.Reader
	key    sessionKey
	limits limits
	done   chan struct{}
	// grown are the LUNs whose new size the initiator has not been told of. The target locks it.
	grown map[uint16]bool

	// tasks wait for data. Only the reading goroutine uses them.
	tasks       map[uint32]*task
	transferTag uint32
	slots       chan struct{}
	running     sync.WaitGroup

	waiting                              atomic.Int32
	mu                                   sync.Mutex
	out                                  *bufio.Writer
	statusSN, expCommandSN, maxCommandSN uint32
}

func newSession(t *Target, conn net.Conn) *session {
	return &session{
		target: t, conn: conn, in: bufio.NewReaderSize(conn, 16<<10), out: bufio.NewWriterSize(conn, 32<<10),
		limits: defaultLimits(), done: make(chan struct{}), tasks: map[uint32]*task{}, slots: make(chan struct{}, workers),
	}
}

// sending is what a PDU is for its session.
type sending int

const (
	sendPart   sending = iota // more of the command follows
	sendStatus                // the end of what has no place in the window
	sendAnswer                // the end of what has
)

func (p *pdu) ending() sending {
	if p.counts() {
		return sendAnswer
	}
	return sendStatus
}

// send adds the sequence numbers. It flushes unless another sender waits, who will.
func (s *session) send(b []byte, as sending) error {
	b = seal(b)
	s.waiting.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.waiting.Add(-1) == 0
	if as == sendAnswer {
		s.maxCommandSN++
	}
	be.PutUint32(b[24:], s.statusSN)
	be.PutUint32(b[28:], s.expCommandSN)
	be.PutUint32(b[32:], s.maxCommandSN)
	if as >= sendStatus {
		s.statusSN++
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return err
	}
	if _, err := s.out.Write(b); err != nil || !last {
		return err
	}
	return s.out.Flush()
}

// serve handles requests until the initiator logs out or the connection ends.
func (s *session) serve() error {
	defer func() {
		_ = s.conn.Close() // so that no worker waits for it
		s.running.Wait()
	}()
	for own := make([]byte, loginSegment); ; {
		if err := s.serveOne(own); errors.Is(err, errLogout) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// serveOne handles a request. Its data comes in parts if it is too long for the session's own buffer and the target has no larger one.
func (s *session) serveOne(own []byte) error {
	p := pdu{buffer: own}
	if err := p.readHeader(s.in); err != nil {
		return err
	}
	limit := len(own)
	if op := p.op(); op == opCommand || op == opDataOut {
		limit = segmentSize
	}
	if p.dataLength() > limit {
		return p.tooLong(limit)
	}
	if p.unread > len(own) {
		if large := s.target.takeBuffer(); large != nil {
			defer s.target.giveBuffer(large)
			p.buffer = large[:segmentSize]
			_ = s.conn.SetReadDeadline(time.Now().Add(sendTime)) // that of a closed connection fails, and so does what follows
			defer func() { _ = s.conn.SetReadDeadline(time.Time{}) }()
		}
	}
	if err := p.next(s.in); err != nil {
		return err
	}
	if isNext, err := s.isNext(&p); err != nil {
		return err
	} else if isNext {
		if err := s.handle(&p); err != nil {
			return err
		}
	}
	_, err := s.in.Discard(p.unread)
	return err
}

// isNext is false for commands outside of the window, which are ignored (RFC 7143, section 4.2.2.1).
func (s *session) isNext(p *pdu) (bool, error) {
	if !p.counts() {
		return true, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := p.commandSN(); {
	case int32(n-s.expCommandSN) < 0 || int32(n-s.maxCommandSN) > 0:
		return false, nil
	case n != s.expCommandSN:
		return false, fmt.Errorf("command %d came, and %d is the next", n, s.expCommandSN)
	}
	s.expCommandSN++
	return true, nil
}

var errLogout = errors.New("logged out")

func (s *session) handle(p *pdu) error {
	switch op := p.op(); {
	case op == opText:
		return s.text(p)
	case op == opLogout:
		return s.logout(p)
	case s.key.discovery:
		return s.reject(p, 4) // a protocol error
	case op == opNopOut:
		return s.nop(p)
	case op == opCommand:
		return s.command(p)
	case op == opTaskMgmt:
		return s.manage(p)
	case op == opDataOut:
		return s.dataOut(p)
	}
	return s.reject(p, 5) // the command is not supported
}

func (s *session) reject(p *pdu, reason byte) error {
	b := newPDU(opReject, noTag, p.header[:])
	b[2] = reason
	return s.send(b, p.ending())
}

func (s *session) nop(p *pdu) error {
	if p.tag() == noTag {
		return nil
	}
	b := newPDU(opNopIn, p.tag(), p.data[:min(len(p.data), s.limits.send)])
	copy(b[8:16], p.header[8:16])
	be.PutUint32(b[20:], noTag)
	return s.send(b, p.ending())
}

// text answers SendTargets; the other keys are negotiated in the login.
func (s *session) text(p *pdu) error {
	keys, err := parseText(p.data)
	if err != nil || p.has(flagContinue) || !p.has(flagFinal) {
		return s.reject(p, 4)
	}
	var answers pairs
	for _, key := range keys {
		switch {
		case key.key != "SendTargets":
			answers = append(answers, pair{key.key, reject})
		case key.value == "All" && !s.key.discovery:
			answers = append(answers, pair{key.key, reject})
		case key.value == "All" || key.value == "" || key.value == s.target.Name:
			answers = append(answers, pair{"TargetName", s.target.Name}, pair{"TargetAddress", portal(s.conn) + ",1"})
		}
	}
	b := newPDU(opTextReply, p.tag(), answers.text())
	be.PutUint32(b[20:], noTag)
	return s.send(b, p.ending())
}

// portal is the address that the initiator came to.
func portal(conn net.Conn) string {
	address, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return conn.LocalAddr().String()
	}
	return netip.AddrPortFrom(address.Addr().Unmap().WithZone(""), address.Port()).String()
}

func (s *session) logout(p *pdu) error {
	s.running.Wait()
	b := newPDU(opLogoutDone, p.tag(), nil)
	if p.header[1]&0x7f == 2 {
		b[2] = 2 // a connection can't be recovered
		return s.send(b, p.ending())
	}
	return errors.Join(errLogout, s.send(b, p.ending()))
}

// manage answers task management. What workers do is complete before that, so that only tasks that wait for data are left to abort.
func (s *session) manage(p *pdu) error {
	const abortTask, abortTaskSet, clearTaskSet, lunReset, reassign = 1, 2, 4, 5, 8
	const complete, noTask, noLUN, noReassign, notSupported = 0, 1, 2, 4, 5
	s.running.Wait()
	number, ok := lunOf(p.header[8:16])
	response := byte(complete)
	switch p.header[1] & 0x7f {
	case abortTask:
		response = noTask
		if t := s.tasks[p.word(20)]; t != nil && ok && t.unit.number == number {
			s.abort(t)
			response = complete
		}
	case abortTaskSet, clearTaskSet, lunReset:
		if !ok || !s.target.has(number) {
			response = noLUN
		}
		for _, t := range s.tasks {
			if ok && t.unit.number == number {
				s.abort(t)
			}
		}
	case reassign:
		response = noReassign
	default:
		response = notSupported
	}
	b := newPDU(opTaskReply, p.tag(), nil)
	b[2] = response
	return s.send(b, p.ending())
}

// abort forgets a task, which has no answer then.
func (s *session) abort(t *task) {
	delete(s.tasks, t.tag)
	if t.ending == sendAnswer {
		s.mu.Lock()
		s.maxCommandSN++
		s.mu.Unlock()
	}
}
