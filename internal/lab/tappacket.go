package lab

import (
	"encoding/binary"
	"errors"
	"io"
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

// recall changes a call to one of another procedure.
func (p *packet) recall(c Call) { binary.BigEndian.PutUint32(p[4*3:], uint32(c)) }

// copyPackets forwards packets until faulty, which may change their headers, rejects one. Their bodies are not held in memory.
func copyPackets(to io.Writer, from io.Reader, faulty func(*packet) bool) error {
	for {
		var p packet
		if _, err := io.ReadFull(from, p[:]); err != nil {
			return err
		}
		if p.length() < headerSize || p.length() > maxPacket {
			return errors.New("not a packet of libvirt's")
		}
		if faulty(&p) {
			return nil
		}
		if _, err := to.Write(p[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, p.length()-headerSize); err != nil {
			return err
		}
	}
}
