package stream

import (
	"bytes"
	"errors"
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
// report is told how far it is after each block. Each travels by itself: several together in one packet
// were measured, and took longer.
func CopySparse(to Sink, r io.Reader, report func(done int64)) (done int64, err error) {
	block := make([]byte, blockSize)
	var hole int64
	for {
		n, err := io.ReadFull(r, block)
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
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return done, to.Skip(hole)
		case err != nil:
			return done, err
		}
	}
}
