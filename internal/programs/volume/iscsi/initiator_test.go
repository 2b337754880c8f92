package iscsi

import (
	"cmp"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

const targetName = "iqn.2026-01.io.virtclaim:test"

// memory is a disk; broken is what it fails with.
type memory struct {
	mu     sync.Mutex
	b      []byte
	synced int
	broken error
}

func (m *memory) Size() int64 { return int64(len(m.b)) }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return 0, m.broken
	}
	return copy(p, m.b[off:]), nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != nil {
		return 0, m.broken
	}
	return copy(m.b[off:], p), nil
}

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced++
	return m.broken
}

func (m *memory) Zero(off, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.b[off : off+n])
	return m.broken
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve is the address of a target.
func serve(t testing.TB, target *Target) string {
	t.Helper()
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- target.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// initiator is a small one, which does one thing at a time.
type initiator struct {
	*testing.T
	conn      net.Conn
	commandSN uint32
	tag       uint32
	isid      byte
	stage     byte
	part      int
	last      pdu
	segments  []int // of the Data-In PDUs of the last command
}

func dial(t *testing.T, address string) *initiator {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &initiator{T: t, conn: conn, commandSN: 7, tag: 100}
}

// send sends a PDU, whose flags are b[1].
func (i *initiator) send(op, flags byte, data []byte, fill func(b []byte)) {
	i.Helper()
	b := newPDU(op, i.tag, data)
	b[1] = flags
	be.PutUint32(b[24:], i.commandSN)
	if fill != nil {
		fill(b)
	}
	if _, err := i.conn.Write(seal(b)); err != nil {
		i.Fatal(err)
	}
}

func (i *initiator) receive() *pdu {
	i.Helper()
	i.last = pdu{}
	if err := i.last.read(i.conn, make([]byte, segmentSize)); err != nil {
		i.Fatal(err)
	}
	return &i.last
}

// ask sends a PDU that has a place in the order of commands, and has its answer.
func (i *initiator) ask(op, flags byte, data []byte, fill func(b []byte)) *pdu {
	i.Helper()
	i.tag++
	i.send(op, flags, data, fill)
	i.commandSN++
	return i.receive()
}

// login sends a login request: status is its class and detail.
func (i *initiator) login(next byte, keys ...pair) (answers pairs, status [2]byte) {
	i.Helper()
	i.send(opLogin|0x40, flagFinal|i.stage<<2|next, pairs(keys).text(), func(b []byte) { b[13] = i.isid })
	p := i.receive()
	if p.op() != opLoginReply {
		i.Fatalf("opcode %#x", p.op())
	}
	answers, err := parseText(p.data)
	if err != nil {
		i.Fatal(err)
	}
	if p.has(flagFinal) {
		i.stage = p.header[1] & 3
	}
	return answers, [2]byte(p.header[36:38])
}

var names = []pair{{"InitiatorName", "iqn.2026-01.io.virtclaim:initiator"}, {"TargetName", targetName}, {"SessionType", "Normal"}}

// loggedIn is an initiator without CHAP, with other operational keys.
func loggedIn(t *testing.T, address string, keys ...pair) *initiator {
	t.Helper()
	i := dial(t, address)
	i.stage = stageOperational
	if answers, status := i.login(stageFull, append(slices.Clone(names), keys...)...); status != [2]byte{} {
		t.Fatal(answers, status)
	}
	return i
}

// result is the end of a command.
type result struct {
	status        byte
	sense         sense
	under, over   int
	data          []byte
	commandWindow int
}

// command sends a command with data, of which some is immediate.
func (i *initiator) command(lun uint16, cdb []byte, expected int, out []byte, immediate int) result {
	i.Helper()
	flags := byte(flagFinal | flagRead)
	if out != nil {
		flags = flagFinal | flagWrite
	}
	p := i.ask(opCommand, flags, out[:immediate], func(b []byte) { fillCommand(b, lun, cdb, expected) })
	var r result
	i.segments = nil
	for ; ; p = i.receive() {
		switch p.op() {
		case opR2T:
			i.dataOut(p, out)
		case opDataIn:
			if int(p.word(40)) != len(r.data) || int(p.word(36)) != len(i.segments) {
				i.Fatalf("Data-In %d at %d after %d bytes", p.word(36), p.word(40), len(r.data))
			}
			r.data, i.segments = append(r.data, p.data...), append(i.segments, len(p.data))
			if p.has(1) {
				return r.end(p)
			}
		case opResponse:
			if len(p.data) > 0 {
				r.sense = sense{p.data[4], p.data[14], p.data[15]}
			}
			return r.end(p)
		default:
			i.Fatalf("opcode %#x", p.op())
		}
	}
}

func fillCommand(b []byte, lun uint16, cdb []byte, expected int) {
	be.PutUint16(b[8:], lun)
	be.PutUint32(b[20:], uint32(expected))
	copy(b[32:], cdb)
}

func (r result) end(p *pdu) result {
	r.status, r.commandWindow = p.header[3], int(p.word(32)-p.word(28)+1)
	if p.has(2) {
		r.under = int(p.word(44))
	}
	if p.has(4) {
		r.over = int(p.word(44))
	}
	return r
}

// dataOut answers an R2T with PDUs of 1,000 bytes, or of a part.
func (i *initiator) dataOut(r2t *pdu, out []byte) {
	i.Helper()
	at := int(r2t.word(40))
	part, transfer := out[at:at+int(r2t.word(44))], r2t.word(20)
	for n := 0; len(part) > 0; n++ {
		data := part[:min(cmp.Or(i.part, 1000), len(part))]
		part = part[len(data):]
		var flags byte
		if len(part) == 0 {
			flags = flagFinal
		}
		i.send(opDataOut, flags, data, func(b []byte) {
			be.PutUint32(b[20:], transfer)
			be.PutUint32(b[36:], uint32(n))
			be.PutUint32(b[40:], uint32(at))
		})
		at += len(data)
	}
}

// ends waits for the target to close the connection.
func (i *initiator) ends() {
	i.Helper()
	if n, err := io.Copy(io.Discard, i.conn); n > 0 {
		i.Errorf("%d bytes came, and then %v", n, err)
	}
}

func cdb10(op byte, lba uint32, blocks int) []byte {
	cdb := make([]byte, 16)
	cdb[0] = op
	be.PutUint32(cdb[2:], lba)
	be.PutUint16(cdb[7:], uint16(blocks))
	return cdb
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for at := range b {
		b[at] = byte(at%251 + at/BlockSize)
	}
	return b
}
