package stream

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/digitalocean/go-libvirt"
)

// The types and statuses of packets, from src/rpc/virnetprotocol.x.
const (
	program = 0x20008086
	version = 1

	kindCall   = 0
	kindReply  = 1
	kindStream = 3
	kindHole   = 6

	statusOK       = 0
	statusError    = 1
	statusContinue = 2

	headerSize = 28
	// maxBody is the largest body that libvirtd accepts: it closes the connection for a larger one.
	maxBody = 32<<20 - headerSize + 4
)

// procedure is a procedure number from src/remote/remote_protocol.x.
type procedure uint32

const (
	procOpen     procedure = 1
	procAuthList procedure = 66
	procPolkit   procedure = 70
	procUpload   procedure = 208
	procDownload procedure = 209
)

// packet is one message. A call, its reply and its stream have the same procedure and serial number.
type packet struct {
	program        uint32
	procedure      procedure
	kind           uint32
	serial, status uint32
	body           []byte
}

// appendTo appends the encoded packet to b.
func (p packet) appendTo(b []byte) []byte {
	for _, word := range []uint32{uint32(headerSize + len(p.body)), program, version, uint32(p.procedure), p.kind, p.serial, p.status} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return append(b, p.body...)
}

func read(r io.Reader) (packet, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return packet{}, err
	}
	word := func(n int) uint32 { return binary.BigEndian.Uint32(header[4*n:]) }
	length := word(0)
	if length < headerSize || length > headerSize+maxBody {
		return packet{}, fmt.Errorf("a packet of %d bytes is none of libvirt's", length)
	}
	p := packet{program: word(1), procedure: procedure(word(3)), kind: word(4), serial: word(5), status: word(6)}
	p.body = make([]byte, length-headerSize)
	_, err := io.ReadFull(r, p.body)
	return p, err
}

// failure is the error in a packet; nil without one.
func (p packet) failure() error {
	if p.status != statusError {
		return nil
	}
	// remote_error begins with the code, the domain and an optional message.
	d := decoder(p.body)
	code, _ := d.word()
	_, _ = d.word()
	message := "libvirt does not say why"
	if has, ok := d.word(); ok && has == 1 {
		if text, ok := d.text(); ok {
			message = text
		}
	}
	return libvirt.Error{Code: code, Message: message}
}

// decoder reads XDR (RFC 4506).
type decoder []byte

func (d *decoder) word() (uint32, bool) {
	if len(*d) < 4 {
		return 0, false
	}
	w := binary.BigEndian.Uint32(*d)
	*d = (*d)[4:]
	return w, true
}

func (d *decoder) long() (uint64, bool) {
	if len(*d) < 8 {
		return 0, false
	}
	l := binary.BigEndian.Uint64(*d)
	*d = (*d)[8:]
	return l, true
}

func (d *decoder) text() (string, bool) {
	n, ok := d.word()
	if !ok || uint64(n) > uint64(len(*d)) {
		return "", false
	}
	text := string((*d)[:n])
	*d = (*d)[n:]
	return text, true
}

// encoder writes XDR.
type encoder []byte

func (e *encoder) word(w uint32) { *e = binary.BigEndian.AppendUint32(*e, w) }
func (e *encoder) long(l uint64) { *e = binary.BigEndian.AppendUint64(*e, l) }

func (e *encoder) text(s string) {
	e.word(uint32(len(s)))
	*e = append(*e, s...)
	for range (4 - len(s)%4) % 4 {
		*e = append(*e, 0)
	}
}
