package iscsi

import (
	"encoding/binary"
	"fmt"
	"io"
)

// What RFC 7143 (section 11) calls the opcodes.
const (
	opNopOut     = 0x00
	opCommand    = 0x01
	opTaskMgmt   = 0x02
	opLogin      = 0x03
	opText       = 0x04
	opDataOut    = 0x05
	opLogout     = 0x06
	opNopIn      = 0x20
	opResponse   = 0x21
	opTaskReply  = 0x22
	opLoginReply = 0x23
	opTextReply  = 0x24
	opDataIn     = 0x25
	opLogoutDone = 0x26
	opR2T        = 0x31
	opReject     = 0x3f
)

const (
	headerSize = 48
	// segmentSize is the most data that a PDU has, in each direction.
	segmentSize = 128 << 10
	// loginSegment is the most data of a PDU before limits are negotiated.
	loginSegment = 8192
	// noTag is a tag that names no task.
	noTag = 0xffffffff

	flagFinal    = 0x80
	flagContinue = 0x40
)

var be = binary.BigEndian

// pdu is what came from the initiator.
type pdu struct {
	header [headerSize]byte
	data   []byte
	// buffer has the data, or a part of it; unread is how much is not read yet, with the padding.
	buffer []byte
	unread int
}

func (p *pdu) op() byte        { return p.header[0] & 0x3f }
func (p *pdu) immediate() bool { return p.header[0]&0x40 != 0 }

// counts is whether it has its place in the order of commands.
func (p *pdu) counts() bool            { return !p.immediate() && p.op() != opDataOut && p.op() <= opLogout }
func (p *pdu) has(flag byte) bool      { return p.header[1]&flag != 0 }
func (p *pdu) word(at int) uint32      { return be.Uint32(p.header[at:]) }
func (p *pdu) tag() uint32             { return p.word(16) }
func (p *pdu) commandSN() uint32       { return p.word(24) }
func (p *pdu) dataLength() int         { return int(p.word(4) & 0xffffff) }
func (p *pdu) additionalHeaders() byte { return p.header[4] }

// read has the next PDU, whose data is in the buffer. Its length is the limit, and a multiple of four.
func (p *pdu) read(r io.Reader, buffer []byte) error {
	if err := p.readHeader(r); err != nil {
		return err
	}
	if n := p.dataLength(); n > len(buffer) {
		return p.tooLong(len(buffer))
	}
	p.buffer = buffer
	return p.next(r)
}

func (p *pdu) readHeader(r io.Reader) error {
	if _, err := io.ReadFull(r, p.header[:]); err != nil {
		return err
	}
	if p.additionalHeaders() != 0 {
		return fmt.Errorf("opcode %#x has additional header segments, and none are known here", p.op())
	}
	p.data, p.unread = nil, padded(p.dataLength())
	return nil
}

func (p *pdu) tooLong(limit int) error {
	return fmt.Errorf("opcode %#x has %d bytes of data, and the limit is %d", p.op(), p.dataLength(), limit)
}

// next has the next part of the data in the buffer, whose length is a multiple of four.
func (p *pdu) next(r io.Reader) error {
	n := min(len(p.buffer), p.unread)
	_, err := io.ReadFull(r, p.buffer[:n])
	if p.unread -= n; p.unread == 0 {
		n -= padded(p.dataLength()) - p.dataLength()
	}
	p.data = p.buffer[:n]
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func padded(n int) int { return (n + 3) &^ 3 }

// newPDU is what goes to the initiator; the session adds the sequence numbers and the length.
func newPDU(op byte, tag uint32, data []byte) []byte {
	b := make([]byte, headerSize, headerSize+padded(len(data)))
	b[0], b[1] = op, flagFinal
	be.PutUint32(b[16:], tag)
	return append(b, data...)
}

// seal sets the length of the data, and pads it.
func seal(b []byte) []byte {
	n := len(b) - headerSize
	be.PutUint32(b[4:], uint32(n))
	return append(b, make([]byte, padded(n)-n)...)
}
