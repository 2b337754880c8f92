package iscsi

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// recorded is a connection whose initiator has said all at once.
type recorded struct {
	io.Reader
	net.Conn
}

func (r recorded) Read(b []byte) (int, error)       { return r.Reader.Read(b) }
func (r recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (r recorded) Close() error                     { return nil }
func (r recorded) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (r recorded) SetReadDeadline(time.Time) error  { return nil }
func (r recorded) SetWriteDeadline(time.Time) error { return nil }

// requested is a PDU as an initiator sends it.
func requested(op, flags byte, data []byte, fill func(b []byte)) []byte {
	b := newPDU(op, 1, data)
	b[1] = flags
	if fill != nil {
		fill(b)
	}
	return seal(b)
}

func FuzzPDU(f *testing.F) {
	f.Add(requested(opNopOut, flagFinal, []byte("ping!"), nil))
	f.Add(requested(opLogin, 0x87, pairs(names).text(), nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pdu
		in := bytes.NewReader(b)
		if err := p.read(in, make([]byte, loginSegment)); err != nil {
			return
		}
		if again := seal(append(p.header[:], p.data...)); in.Len() != len(b)-len(again) || !bytes.Equal(again[:headerSize+len(p.data)], b[:headerSize+len(p.data)]) {
			t.Errorf("% x has the data % x", b, p.data)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add(pairs(names).text())
	f.Add([]byte("MaxRecvDataSegmentLength=0x200\x00HeaderDigest=CRC32C,None\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := parseText(b)
		if err != nil {
			return
		}
		l := defaultLimits()
		for _, p := range all {
			_, _ = parseBinary(p.value)
			if answer := l.negotiate(p.key, p.value); len(answer) > 20 {
				t.Errorf("%q is answered with %q", p, answer)
			}
		}
		if l.send < 512 || l.send > segmentSize || l.send%4 != 0 || l.burst < 512 || l.burst > 1<<20 {
			t.Errorf("%q leads to %+v", b, l)
		}
		if again, err := parseText(all.text()); err != nil || len(again) != len(all) {
			t.Errorf("%q is %q, and then %q, %v", b, all, again, err)
		}
	})
}

// Nothing but the right answer leads past CHAP.
func FuzzLogin(f *testing.F) {
	named := append(slices.Clone(names), pair{"AuthMethod", "CHAP"})
	f.Add(append(requested(opLogin|0x40, 0x81, pairs(named).text(), nil), requested(opLogin|0x40, 0x81, []byte("CHAP_A=5\x00"), nil)...), true)
	f.Add(requested(opLogin|0x40, 0x87, pairs(names).text(), nil), false)
	f.Add(requested(opLogin|0x40, 0x44, pairs(names).text(), nil), false)
	f.Fuzz(func(t *testing.T, b []byte, chap bool) {
		target := &Target{Name: targetName}
		if chap {
			target.CHAP = &Credentials{"user", "secret-of-initiators"}
		}
		s := newSession(target, recorded{Reader: bytes.NewReader(b)})
		if err := s.login(); chap && err == nil {
			t.Errorf("% x logs in", b)
		}
	})
}

func FuzzCDB(f *testing.F) {
	for op := range 256 {
		f.Add(cdb10(byte(op), 1, 24), uint64(0), make([]byte, 24))
	}
	f.Add([]byte{0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 24}, uint64(0), []byte{})
	f.Fuzz(func(t *testing.T, cdb []byte, lun uint64, data []byte) {
		target, disk := targetOf(t, 32*BlockSize)
		cdb = append(cdb, make([]byte, 16)...)[:16]
		number, ok := lunOf(be.AppendUint64(nil, lun))
		var u *unit
		if ok {
			u = target.use(number)
		}
		o, err := target.plan(u, cdb)
		if err != nil {
			return
		}
		isOfDisk := o.kind == reads || o.kind == writes
		if o.n < 0 || o.off < 0 || isOfDisk && o.off+o.n > disk.Size() || o.kind == replies && int(o.n) != len(o.data) || o.kind == takesParameters && o.n > 8<<10 {
			t.Errorf("% x is %+v", cdb, o)
		}
		if o.takesData() && u.writable == nil {
			t.Errorf("% x writes to a read-only LUN", cdb)
		}
		if o.finish != nil {
			_ = o.finish(append(data, make([]byte, o.n)...)[:o.n])
		}
		if disk.Size() != 32*BlockSize {
			t.Errorf("% x leaves %d bytes", cdb, disk.Size())
		}
	})
}

// What comes after the login.
func FuzzSession(f *testing.F) {
	write := requested(opCommand|0x40, flagFinal|flagWrite, nil, func(b []byte) { fillCommand(b, 0, cdb10(0x2a, 1, 1), 512) })
	f.Add(append(write, requested(opDataOut, flagFinal, make([]byte, 512), func(b []byte) { be.PutUint32(b[20:], 1) })...))
	f.Add(append(write, requested(opTaskMgmt|0x40, 0x81, nil, func(b []byte) { be.PutUint32(b[20:], 1) })...))
	f.Add(requested(opCommand|0x40, flagFinal|flagRead, nil, func(b []byte) { fillCommand(b, readOnlyLUN, cdb10(0x28, 1, 8), 4096) }))
	f.Add(requested(opText|0x40, flagFinal, []byte("SendTargets=All\x00"), nil))
	f.Add(requested(opLogout|0x40, flagFinal, nil, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		target, disk := targetOf(t, 32*BlockSize)
		s := newSession(target, recorded{Reader: bytes.NewReader(b)})
		_ = s.serve()
		if len(s.tasks) > 2*window || disk.Size() != 32*BlockSize {
			t.Errorf("% x leaves %d tasks", b, len(s.tasks))
		}
	})
}
