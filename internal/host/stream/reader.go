package stream

import (
	"fmt"
	"io"
	"math"

	"github.com/digitalocean/go-libvirt"
)

// Reader reads a volume sequentially. libvirtd sends its data, and only the lengths of its holes. The end may come too early, because
// libvirtd ends a stream with holes like any other when reading the volume has failed: the caller must verify the length.
type Reader struct {
	conn *Conn
	data []byte
	// hole is the rest of a hole, in bytes.
	hole  int64
	ended bool
}

// Read begins to read length bytes of a volume, from an offset, or all behind it if length is 0.
func (c *Conn) Read(v libvirt.StorageVol, offset, length int64) (*Reader, error) {
	return &Reader{conn: c}, c.ask(procDownload, transfer(v, offset, length, sparse))
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	for len(r.data) == 0 && r.hole == 0 {
		if r.ended {
			return 0, io.EOF
		}
		if err := r.receive(); err != nil {
			return 0, err
		}
	}
	if r.hole > 0 {
		n = int(min(r.hole, int64(len(p))))
		clear(p[:n])
		r.hole -= int64(n)
		return n, nil
	}
	n = copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// receive waits for more data, the next hole, or the end.
func (r *Reader) receive() error {
	p, err := r.conn.part()
	switch {
	case err != nil:
		return err
	case p.kind == kindHole:
		d := decoder(p.body)
		hole, ok := d.long()
		if !ok || hole > math.MaxInt64 {
			return fmt.Errorf("a hole of %d bytes is none of libvirt's", hole)
		}
		r.hole = int64(hole)
	case len(p.body) == 0:
		r.ended = true
		return r.conn.finishDownload()
	default:
		r.data = p.body
	}
	return nil
}

// SkipHole implements Holed.
func (r *Reader) SkipHole(unit int64) int64 {
	skipped := r.hole / unit * unit
	r.hole -= skipped
	return skipped
}
