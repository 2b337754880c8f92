package lab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// packet is the header of a packet of libvirt's protocol: seven numbers, the first of which is the length of the whole packet.
type packet [headerSize]byte

const (
	headerSize = 28
	// maxPacket is above libvirt's limit of slightly more than 32 MiB.
	maxPacket = 64 << 20

	remoteProgram = 0x20008086
	typeCall      = 0
	typeReply     = 1
	typeStream    = 3
	typeHole      = 6
)

func (p packet) word(n int) uint32 { return binary.BigEndian.Uint32(p[4*n:]) }
func (p packet) length() int64     { return int64(p.word(0)) }
func (p packet) program() uint32   { return p.word(1) }
func (p packet) call() Call        { return Call(p.word(3)) }
func (p packet) kind() uint32      { return p.word(4) }
func (p packet) serial() uint32    { return p.word(5) }

// setCall changes a call to one of another procedure.
func (p *packet) setCall(c Call) { binary.BigEndian.PutUint32(p[4*3:], uint32(c)) }

// withBody is called with a packet's body, which it may change, before the packet is forwarded. Those behind it pass meanwhile.
type withBody func(body []byte)

// copyPackets forwards packets until faulty, which may change their headers, rejects one. Only the bodies for which it returns a function
// are held in memory.
func copyPackets(to io.Writer, from io.Reader, faulty func(*packet) (first withBody, reject bool)) error {
	var mu sync.Mutex // for whole packets
	for {
		var p packet
		if _, err := io.ReadFull(from, p[:]); err != nil {
			return err
		}
		if p.length() < headerSize || p.length() > maxPacket {
			return errors.New("not a packet of libvirt's")
		}
		first, reject := faulty(&p)
		if reject {
			return nil
		}
		if first == nil {
			if err := p.forward(to, from, &mu); err != nil {
				return err
			}
			continue
		}
		body := make([]byte, p.length()-headerSize)
		if _, err := io.ReadFull(from, body); err != nil {
			return err
		}
		go func() {
			first(body)
			_ = p.forward(to, bytes.NewReader(body), &mu) // the connection may have ended meanwhile
		}()
	}
}

// forward writes the packet with its body.
func (p *packet) forward(to io.Writer, body io.Reader, mu *sync.Mutex) error {
	mu.Lock()
	defer mu.Unlock()
	if _, err := to.Write(p[:]); err != nil {
		return err
	}
	_, err := io.CopyN(to, body, p.length()-headerSize)
	return err
}
