package iscsi

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// task is a SCSI command that is not answered yet.
type task struct {
	tag    uint32
	ending sending
	lun    [8]byte
	unit   *unit
	operation
	// expected is the Expected Data Transfer Length in bytes, and length is how many are transferred.
	expected, length int64

	// got is how much of the data came, of which the first requested bytes were asked for.
	got, requested             int64
	transferTag, r2tSN, dataSN uint32
	parameters                 []byte
	err                        error
}

const (
	flagRead  = 0x40
	flagWrite = 0x20

	statusCheck = 2
	statusFull  = 0x28
)

// command begins a SCSI command.
func (s *session) command(p *pdu) error {
	t := &task{tag: p.tag(), ending: p.ending(), lun: [8]byte(p.header[8:16]), expected: int64(p.word(20))}
	if s.tasks[t.tag] != nil {
		return fmt.Errorf("the task tag %#x is in use", t.tag)
	}
	if !p.has(flagFinal) || p.dataLength() > 0 && !s.limits.immediate || int64(p.dataLength()) > t.expected {
		return errors.New("data came with a command that may have none, or less")
	}
	number, ok := lunOf(t.lun[:])
	if ok {
		t.unit = s.target.use(number)
	}
	var err error
	if cdb := p.header[32:48]; t.unit != nil && s.target.tells(s, number, cdb[0]) {
		err = errGrown
	} else {
		t.operation, err = s.target.plan(t.unit, cdb)
	}
	if t.unit != nil {
		t.unit.users.Done()
	}
	if err != nil {
		return s.checkCondition(t, err)
	}
	direction := byte(flagRead)
	if t.takesData() {
		direction = flagWrite
	}
	if !p.has(direction) {
		t.expected = 0
	}
	if p.has(flagRead) && (p.has(flagWrite) || t.takesData()) || t.kind == takesParameters && t.expected != t.n {
		return s.checkCondition(t, errField)
	}
	t.length = min(t.n, t.expected)
	switch {
	case t.takesData():
		return s.receive(t, p)
	case t.kind == reads || t.finish != nil:
		s.spawn(t)
		return nil
	}
	return s.reply(t)
}

// spawn has a worker finish the task. While other sessions have all buffers of the target, a session has one worker with a small buffer:
// so it goes on, even if they never read their answers.
func (s *session) spawn(t *task) {
	s.slots <- struct{}{}
	buffer := s.target.takeBuffer()
	if buffer == nil {
		s.running.Wait()
		buffer = make([]byte, headerSize+loginSegment)
	}
	s.running.Add(1)
	go s.run(t, buffer)
}

func (s *session) run(t *task, buffer []byte) {
	defer func() { s.target.giveBuffer(buffer); <-s.slots; s.running.Done() }()
	if err := s.finish(t, buffer); err != nil {
		_ = s.conn.Close() // and so the session ends
	}
}

func (s *session) finish(t *task, buffer []byte) error {
	if !s.target.reuse(t.unit) {
		return s.checkCondition(t, errNoUnit)
	}
	defer t.unit.users.Done()
	if t.kind == reads {
		return s.read(t, buffer)
	}
	if err := t.finish(t.parameters); err != nil {
		return s.checkCondition(t, err)
	}
	return s.statusGood(t)
}

const (
	largeBuffer = headerSize + segmentSize
	// maxLarge is how many large buffers all sessions of a target have together: 24 MiB.
	maxLarge = 192
)

// buffers have a PDU each.
var buffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// takeBuffer is a large buffer until giveBuffer; nil if the sessions of the target have all.
func (t *Target) takeBuffer() []byte {
	if t.large.Add(1) > maxLarge {
		t.large.Add(-1)
		return nil
	}
	return buffers.Get().(*[largeBuffer]byte)[:]
}

func (t *Target) giveBuffer(b []byte) {
	if len(b) == largeBuffer {
		buffers.Put((*[largeBuffer]byte)(b))
		t.large.Add(-1)
	}
}

// read sends what a disk has.
func (s *session) read(t *task, buffer []byte) error {
	if t.length == 0 {
		return s.statusGood(t)
	}
	var at, burst int64
	for sn := uint32(0); at < t.length; sn++ {
		n := min(int64(s.limits.send), int64(s.limits.burst)-burst, t.length-at, int64(len(buffer)-headerSize))
		b := buffer[:headerSize+n]
		if err := readFull(t.unit.Disk, b[headerSize:], t.off+at); err != nil {
			return s.checkCondition(t, s.target.senseOf(err, "read", t.unit, errRead))
		}
		at, burst = at+n, (burst+n)%int64(s.limits.burst)
		if err := s.dataIn(t, b, sn, uint32(at-n), at == t.length, burst == 0); err != nil {
			return err
		}
	}
	return nil
}

// readFull has zeros where a disk ends early, and never what was in the buffer.
func readFull(d Disk, b []byte, off int64) error {
	n, err := d.ReadAt(b, off)
	clear(b[n:])
	if n == len(b) || err == io.EOF { //nolint:errorlint // by the contract of ReaderAt
		return nil
	}
	return err
}

// reply sends what is known without a disk.
func (s *session) reply(t *task) error {
	if t.length == 0 {
		return s.statusGood(t)
	}
	b := append(make([]byte, headerSize, headerSize+padded(int(t.length))), t.data[:t.length]...)
	return s.dataIn(t, b, 0, 0, true, true)
}

// dataIn sends a part of the data, and the status with the last one.
func (s *session) dataIn(t *task, b []byte, sn, off uint32, isLast, endsBurst bool) error {
	clear(b[:headerSize])
	b[0] = opDataIn
	be.PutUint32(b[16:], t.tag)
	be.PutUint32(b[20:], noTag)
	be.PutUint32(b[36:], sn)
	be.PutUint32(b[40:], off)
	if endsBurst {
		b[1] = flagFinal
	}
	if !isLast {
		return s.send(b, sendPart)
	}
	const hasStatus = 1
	b[1] = flagFinal | hasStatus
	t.residual(b, t.n)
	return s.send(b, t.ending)
}

// residual says how much less or more the command has than the initiator expects.
func (t *task) residual(b []byte, n int64) {
	const overflow, underflow = 4, 2
	switch less := t.expected - n; {
	case less > 0:
		b[1] |= underflow
		be.PutUint32(b[44:], uint32(less))
	case less < 0:
		b[1] |= overflow
		be.PutUint32(b[44:], uint32(-less))
	}
}

func (s *session) statusGood(t *task) error {
	b := newPDU(opResponse, t.tag, nil)
	t.residual(b, t.n)
	return s.send(b, t.ending)
}

func (s *session) checkCondition(t *task, err error) error {
	is, ok := errors.AsType[sense](err)
	if !ok {
		is = s.target.senseOf(err, "write", t.unit, errWrite)
	}
	b := newPDU(opResponse, t.tag, is.data())
	b[3] = statusCheck
	t.residual(b, 0)
	return s.send(b, t.ending)
}

// receive begins a task that takes data: with what came, and the rest is asked for.
func (s *session) receive(t *task, p *pdu) error {
	if len(s.tasks) >= 2*window { // immediate commands are not in the window
		b := newPDU(opResponse, t.tag, nil)
		b[3] = statusFull
		return s.send(b, t.ending)
	}
	s.tasks[t.tag] = t
	if err := s.takeData(t, p); err != nil {
		return err
	}
	return s.proceed(t)
}

// takeData hands the task the data of a PDU, which its buffer may have a part of.
func (s *session) takeData(t *task, p *pdu) error {
	for {
		t.receive(s.target, p.data[:min(int64(len(p.data)), t.length-t.got)])
		if p.unread == 0 {
			return nil
		}
		if err := p.next(s.in); err != nil {
			return err
		}
	}
}

// receive handles a part of the data. An error is answered when no more data is on its way.
func (t *task) receive(of *Target, data []byte) {
	at := t.off + t.got
	t.got += int64(len(data))
	switch {
	case t.err != nil || len(data) == 0:
	case t.kind == takesParameters:
		t.parameters = append(t.parameters, data...)
	case !of.reuse(t.unit):
		t.err = errNoUnit
	default:
		defer t.unit.users.Done()
		_, t.err = t.unit.writable.WriteAt(data, at)
	}
}

// proceed asks for more data, or finishes the task that has it all.
func (s *session) proceed(t *task) error {
	if t.err == nil && t.got < t.length {
		return s.request(t)
	}
	delete(s.tasks, t.tag)
	switch {
	case t.err != nil:
		return s.checkCondition(t, t.err)
	case t.finish != nil:
		s.spawn(t)
		return nil
	}
	return s.statusGood(t)
}

// request is an R2T.
func (s *session) request(t *task) error {
	s.transferTag = (s.transferTag + 1) & 0x7fffffff
	n := min(int64(s.limits.burst), t.length-t.got)
	t.transferTag, t.dataSN, t.requested = s.transferTag, 0, t.got+n
	b := newPDU(opR2T, t.tag, nil)
	copy(b[8:16], t.lun[:])
	be.PutUint32(b[20:], t.transferTag)
	be.PutUint32(b[36:], t.r2tSN)
	be.PutUint32(b[40:], uint32(t.got))
	be.PutUint32(b[44:], uint32(n))
	t.r2tSN++
	return s.send(b, sendPart)
}

func (s *session) dataOut(p *pdu) error {
	t := s.tasks[p.tag()]
	if t == nil {
		return nil // it was aborted
	}
	got := t.got + int64(p.dataLength())
	if p.word(20) != t.transferTag || p.word(36) != t.dataSN || int64(p.word(40)) != t.got || got > t.requested ||
		p.has(flagFinal) != (got == t.requested) {
		delete(s.tasks, t.tag)
		return s.checkCondition(t, errData)
	}
	t.dataSN++
	if err := s.takeData(t, p); err != nil || got < t.requested {
		return err
	}
	return s.proceed(t)
}

// senseOf returns the sense data of a disk's error, which is logged.
func (t *Target) senseOf(err error, what string, u *unit, is sense) sense {
	t.log(fmt.Errorf("%s LUN %d: %w", what, u.number, err))
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return errNoSpace
	}
	return is
}
