package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host/stream"
)

// headSize is how much of an image is written last: without its head nothing can be opened.
const headSize = 64 << 10

// unfinished is what an image begins with until it is whole.
var unfinished = bytes.Repeat([]byte("virtclaim: this upload is not finished\n"), headSize/39+1)[:headSize]

// ErrTorn is the error of an upload that libvirt confirmed and that is not there.
var ErrTorn = errors.New("libvirt confirmed the upload, but the volume does not have all of it: its storage may be full")

// Upload is an image on its way into a volume.
type Upload struct {
	// Pool and Name are those of the volume. It was made for this upload alone, raw and with a capacity of one byte.
	Pool, Name string
	Image      io.Reader
	// Size tells how many bytes the volume of a raw image is to have, which has so many itself; nil leaves it at that.
	Size func(length int64) int64
	// Check is asked when all but the head is there, and can read all of it; its error breaks the upload off. nil asks nothing.
	Check func(length int64, at io.ReaderAt) error
	// BeforeCommit is asked when all but the head is there and the file is open for that; its error breaks the upload off.
	BeforeCommit func(context.Context) error
	// Report is told every other second how far it is. All is 0: an image does not say how long it is.
	Report func(Progress)
}

// Upload writes an image into a volume. Until all of it is proven to be there the volume begins
// with a text that says otherwise: libvirt confirms uploads whose last writes failed. The head goes last, and is read back.
//
// When that fails, the volume can't be used any more: a next attempt needs a new one.
func (h *Host) Upload(ctx context.Context, u Upload) error {
	op := fmt.Sprintf("upload volume %s in storage pool %s", u.Name, u.Pool)
	v, err := onVolume(ctx, h, op, u.Pool, u.Name, func(_ *libvirt.Libvirt, v libvirt.StorageVol) (libvirt.StorageVol, error) { return v, nil })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := h.openStream(ctx)
	if err != nil {
		return h.failed(op, err)
	}
	defer func() { _ = c.Close() }()
	source := &source{Reader: u.Image}
	u.Image = source
	way := upload{Upload: u, host: h, conn: c, volume: v}
	go way.tell(ctx)
	if err = way.body(); err == nil {
		err = way.finish(ctx)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w (after %d bytes)", err, way.done.Load())
	var content *contentError
	if source.failed || errors.As(err, &content) {
		return h.failedElsewhere(op, err)
	}
	return h.failed(op, err)
}

// source remembers whether it was what failed: errors of other servers look like those of the connection to libvirt. An end is
// io.EOF itself; what wraps it is none.
type source struct {
	io.Reader
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = s.failed || err != nil && err != io.EOF
	return n, err
}

// openStream dials a connection for one transfer.
func (h *Host) openStream(ctx context.Context) (*stream.Conn, error) {
	dialled, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := connect(dialled, h.uri)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	c, err := stream.Open(ctx, conn, string(libvirt.RemoteURI(h.uri)))
	if err != nil {
		return nil, &UnreachableError{err}
	}
	return c, nil
}

// upload is one on its way.
type upload struct {
	Upload
	host   *Host
	conn   *stream.Conn
	volume libvirt.StorageVol

	head []byte
	done atomic.Int64
}

// tell reports until ctx ends, also while nothing moves.
func (u *upload) tell(ctx context.Context) {
	tick := time.NewTicker(progressTime) //nolint:forbidigo // it waits for nothing: it tells how far it is
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.Report(Progress{Done: u.done.Load()})
		}
	}
}

// body writes all but the head, in whose place it says that the image is not finished.
func (u *upload) body() error {
	u.head = make([]byte, headSize)
	n, short, err := stream.ReadFull(u.Image, u.head)
	u.head = u.head[:n]
	u.done.Store(int64(n))
	if err != nil {
		return err
	}
	to, err := u.conn.Upload(u.volume, 0, true)
	if err != nil {
		return err
	}
	if _, err := to.Write(unfinished[:n]); err != nil {
		return err
	}
	if !short {
		if _, err := stream.CopySparse(to, u.Image, func(done int64) { u.done.Store(int64(n) + done) }); err != nil {
			return err
		}
	}
	return to.Finish()
}

// finish looks whether all that was written is there, before the head is written.
func (u *upload) finish(ctx context.Context) error {
	is, err := u.host.Volume(ctx, u.Pool, u.Name)
	if err != nil {
		return err
	}
	length := u.done.Load()
	if is.Physical != length {
		return fmt.Errorf("%w: it has %d bytes of %d", ErrTorn, is.Physical, length)
	}
	if u.Check != nil {
		if err := u.Check(length, uploaded{u}); err != nil {
			return &contentError{err}
		}
	}
	if u.Size != nil && u.Size(length) > length {
		// Now, while libvirt still takes it for raw, whatever its head will tell.
		if err := u.host.ResizeVolume(ctx, u.Pool, u.Name, u.Size(length)); err != nil {
			return err
		}
	}
	return u.finishHead(ctx)
}

// contentError is an error of what was uploaded, which says nothing of the host.
type contentError struct{ error }

func (e *contentError) Unwrap() error { return e.error }

// uploaded reads what was uploaded: the head, which is not there yet, and the volume behind it.
type uploaded struct{ *upload }

func (u uploaded) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < int64(len(u.head)) {
		n = copy(p, u.head[offset:])
	}
	if rest := int64(len(p) - n); rest > 0 {
		var back bytes.Buffer
		if rest = min(rest, u.done.Load()-offset-int64(n)); rest > 0 {
			err = u.conn.Download(&back, u.volume, offset+int64(n), rest)
		}
		n += copy(p[n:], back.Bytes())
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// finishHead writes the head, if it may still be written, and looks whether it is there. A name can come to stand for somebody
// else's volume at any time; a file that was open before Proceed agreed can't: whoever takes the name over unlinks it.
func (u *upload) finishHead(ctx context.Context) error {
	to, err := u.conn.Upload(u.volume, 0, false)
	if err != nil {
		return err
	}
	if err := u.BeforeCommit(ctx); err != nil {
		return err
	}
	if _, err := to.Write(u.head); err != nil {
		return err
	}
	if err := to.Finish(); err != nil {
		return err
	}
	return readsBack(u.conn, u.volume, u.head)
}
