package stream

import (
	"bytes"
	"io"
)

// blockSize is the unit in which zeros become holes: filesystems store no smaller holes, and detecting them costs more.
const blockSize = 64 << 10

var zeros [blockSize]byte

// Sink is a destination of data and holes.
type Sink interface {
	io.Writer
	Skip(bytes int64) error
}

// Holed is a reader that knows its holes, which are not searched for zeros then.
type Holed interface {
	io.Reader
	// SkipHole skips whole units of the hole that is read next, and returns their bytes.
	SkipHole(unit int64) int64
}

// CopySparse copies r to to, and returns the number of bytes. Blocks of zeros become holes, also at the end: what to is given depends on
// the content alone, and not on r's own holes. report is called with the progress after each block. Each block is a packet: the next one is
// read while it is sent. Larger packets of several blocks were slower.
func CopySparse(to Sink, r io.Reader, report func(done int64)) (done int64, err error) {
	block := make([]byte, blockSize)
	holed, _ := r.(Holed)
	var hole int64
	for {
		if holed != nil {
			skipped := holed.SkipHole(blockSize)
			hole += skipped
			done += skipped
		}
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

// ReadFull reads until p is full or r ends. Only io.EOF itself is an end: the error of a broken connection may wrap it, or be
// io.ErrUnexpectedEOF, which io.ReadFull also returns at an end. Taken for the end, it would leave an incomplete image.
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
