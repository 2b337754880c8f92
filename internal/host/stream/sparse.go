package stream

import (
	"bytes"
	"io"
)

// blockSize is the unit in which zeros become holes: filesystems keep no smaller ones, and looking for them costs more.
const blockSize = 64 << 10

var zeros [blockSize]byte

// Sink takes data and holes.
type Sink interface {
	io.Writer
	Skip(bytes int64) error
}

// CopySparse copies all that r has into to, and tells how many bytes that was. Blocks of zeros become holes, also at the end.
// report is told how far it is after each block. Each travels by itself: the next is read while it does, and putting several
// together into one packet took longer.
func CopySparse(to Sink, r io.Reader, report func(done int64)) (done int64, err error) {
	block := make([]byte, blockSize)
	var hole int64
	for {
		n, end, err := ReadFull(r, block)
		if n > 0 && bytes.Equal(block[:n], zeros[:n]) {
			hole += int64(n)
		} else if n > 0 {
			if err := to.Skip(hole); err != nil {
				return done, err
			}
			hole = 0
			if _, err := to.Write(block[:n]); err != nil {
				return done, err
			}
		}
		done += int64(n)
		report(done)
		switch {
		case err != nil:
			return done, err
		case end:
			return done, to.Skip(hole)
		}
	}
}

// ReadFull reads until p is full or r ends. Only a plain io.EOF is an end: a connection that broke off may be an error that wraps
// one, or an io.ErrUnexpectedEOF, which io.ReadFull has for an end, too. Who takes it for that has half an image.
func ReadFull(r io.Reader, p []byte) (n int, end bool, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	if err == io.EOF {
		return n, true, nil
	}
	return n, false, err
}
