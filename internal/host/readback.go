package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/digitalocean/go-libvirt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host/stream"
)

// stretchSize is how many bytes of data, without holes, are read back at a time.
const stretchSize = 32 << 20

// stretch is a part of an image's file, from and to offsets in bytes, with its SHA-256 as sums computes it.
type stretch struct {
	from, to int64
	sum      [sha256.Size]byte
}

// sums is a stream.Sink that computes the SHA-256 of each stretch of what stream.CopySparse gives it. A sum is of the offset and the data
// of each block that is not all zeros: so terabytes of holes take no time, and it is the same wherever the file system has its holes.
type sums struct {
	hash hash.Hash
	// from and at are the offsets of the stretch and of the next block; data is how many bytes the stretch has without holes.
	from, at, data int64
	// ended is called with each stretch.
	ended func(stretch)
}

// newSums returns the sums of what is written from an offset on.
func newSums(from int64, ended func(stretch)) *sums {
	return &sums{hash: sha256.New(), from: from, at: from, ended: ended}
}

// Write implements stream.Sink.
func (s *sums) Write(block []byte) (int, error) {
	if s.data >= stretchSize {
		s.end()
	}
	_, _ = s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(s.at))) // it never fails
	s.at += int64(len(block))
	s.data += int64(len(block))
	return s.hash.Write(block)
}

// Skip implements stream.Sink.
func (s *sums) Skip(bytes int64) error {
	s.at += bytes
	return nil
}

// end ends the stretch, unless it is empty.
func (s *sums) end() {
	if s.at > s.from {
		s.ended(stretch{s.from, s.at, [sha256.Size]byte(s.hash.Sum(nil))})
	}
	s.hash.Reset()
	s.from, s.data = s.at, 0
}

// summed is a stream.Sink with the sums of what is written to it, which are computed while that is sent.
type summed struct {
	stream.Sink
	sums *sums
}

// Write implements stream.Sink.
func (s summed) Write(block []byte) (int, error) {
	computed := make(chan struct{})
	go func() {
		defer close(computed)
		_, _ = s.sums.Write(block)
	}()
	n, err := s.Sink.Write(block)
	<-computed
	return n, err
}

// Skip implements stream.Sink.
func (s summed) Skip(bytes int64) error {
	_ = s.sums.Skip(bytes)
	return s.Sink.Skip(bytes)
}

// readBack reads an upload back while it runs, over a connection of its own: over a network, reading it afterwards would double the time. A
// stretch that libvirtd has not written yet is left for later, like one that can't be read: only what is read after the end is an error.
type readBack struct {
	host   *Host
	volume libvirt.StorageVol
	conn   UploadConn
	// last has just been sent; later are those to be read after the end.
	last  *stretch
	later []stretch
	// running is the stretch that is being read, and verified has whether it is there.
	running  *stretch
	verified chan bool
}

// add is called with each stretch that was sent. The one before it is read back now.
func (b *readBack) add(ctx context.Context, s stretch) {
	b.await()
	if b.running, b.last = b.last, &s; b.running == nil {
		return
	}
	b.verified = make(chan bool, 1)
	go func(s stretch) {
		err := b.conn.open(ctx, b.host)
		if err == nil {
			err = s.verify(b.conn.conn, b.volume)
		}
		if err != nil {
			b.conn.Close()
		}
		b.verified <- err == nil
	}(*b.running)
}

// await waits until the running stretch is read.
func (b *readBack) await() {
	if b.running != nil && !<-b.verified {
		b.later = append(b.later, *b.running)
	}
	b.running = nil
}

// rest reads what has not been read yet, after the upload has ended.
func (b *readBack) rest(conn *stream.Conn) error {
	b.await()
	if b.last != nil {
		b.later = append(b.later, *b.last)
	}
	for _, s := range b.later {
		if err := s.verify(conn, b.volume); err != nil {
			return err
		}
	}
	return nil
}

// close ends a read that is running.
func (b *readBack) close() {
	b.await()
	b.conn.Close()
}

// verify is ErrTorn if a volume has other bytes there.
func (s stretch) verify(conn *stream.Conn, v libvirt.StorageVol) error {
	r, err := conn.Read(v, s.from, s.to-s.from)
	if err != nil {
		return err
	}
	var is stretch
	read := newSums(s.from, func(s stretch) { is = s })
	if _, err := stream.CopySparse(read, r, func(int64) {}); err != nil {
		return err
	}
	read.end()
	if is.to != s.to || !bytes.Equal(is.sum[:], s.sum[:]) {
		return fmt.Errorf("%w: it reads back as other bytes than were sent, between %d and %d", ErrTorn, s.from, s.to)
	}
	return nil
}
