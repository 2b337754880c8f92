package stream

import (
	"errors"
	"io"

	"github.com/digitalocean/go-libvirt"
)

// packetSize is how many bytes are sent at a time. libvirtd does not serve other clients while it writes a packet: larger ones are no
// faster, and make all other clients wait.
const packetSize = 256 << 10

// sparse is VIR_STORAGE_VOL_UPLOAD_SPARSE_STREAM and its counterpart for downloads.
const sparse = 1

// Upload writes into a volume sequentially. If it ends without an error, the last packets may still have failed, because libvirt loses
// their errors: the caller must verify the volume.
type Upload struct {
	conn *Conn
}

// Upload begins to write into a volume at an offset in bytes. With holes, the volume is truncated behind a hole.
func (c *Conn) Upload(v libvirt.StorageVol, offset int64, holes bool) (*Upload, error) {
	var flags uint32
	if holes {
		flags = sparse
	}
	_, err := c.call(procUpload, transfer(v, offset, 0, flags))
	return &Upload{conn: c}, err
}

// transfer encodes the arguments of both calls: length 0 is the whole volume.
func transfer(v libvirt.StorageVol, offset, length int64, flags uint32) []byte {
	var e encoder
	e.text(v.Pool)
	e.text(v.Name)
	e.text(v.Key)
	e.long(uint64(offset))
	e.long(uint64(length))
	e.word(flags)
	return e
}

// Write sends data.
func (u *Upload) Write(data []byte) (n int, err error) {
	for n < len(data) {
		part := data[n:min(len(data), n+packetSize)]
		if err := u.send(kindStream, statusContinue, part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// Skip sends a hole of that many bytes.
func (u *Upload) Skip(bytes int64) error {
	if bytes == 0 {
		return nil
	}
	var e encoder
	e.long(uint64(bytes))
	e.word(0)
	return u.send(kindHole, statusContinue, e)
}

// send sends a part of the stream, unless the peer has refused an earlier one.
func (u *Upload) send(kind, status uint32, body []byte) error {
	select {
	case p, ok := <-u.conn.packets:
		if !ok {
			return u.conn.cause(u.conn.err)
		}
		if err := p.failure(); err != nil && p.serial == u.conn.serial {
			return err
		}
	default:
	}
	err := u.conn.send(packet{procedure: procUpload, kind: kind, serial: u.conn.serial, status: status, body: body})
	if err == nil || errors.Is(err, ErrStalled) {
		return err
	}
	// libvirtd may have sent an error before it closed the connection.
	if p, e := u.conn.next(); e == nil && p.failure() != nil {
		return p.failure()
	}
	return err
}

// Finish ends the stream and waits for libvirtd's confirmation.
func (u *Upload) Finish() error {
	if err := u.send(kindStream, statusOK, nil); err != nil {
		return err
	}
	_, err := u.conn.part()
	return err
}

// Download reads length bytes of a volume, from an offset.
func (c *Conn) Download(w io.Writer, v libvirt.StorageVol, offset, length int64) error {
	if err := c.ask(procDownload, transfer(v, offset, length, 0)); err != nil {
		return err
	}
	for {
		p, err := c.part()
		if err != nil {
			return err
		}
		if len(p.body) == 0 {
			return c.finishDownload()
		}
		if _, err := w.Write(p.body); err != nil {
			return err
		}
	}
}

// finishDownload finishes the stream after the end of its data.
func (c *Conn) finishDownload() error {
	if err := c.send(packet{procedure: procDownload, kind: kindStream, serial: c.serial, status: statusOK}); err != nil {
		return err
	}
	_, err := c.part()
	return err
}
