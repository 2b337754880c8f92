package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// Upload writes an image into a volume that was made for it alone, raw and with a capacity of one byte, and tells its length.
// Until all of that is proven to be there the volume begins with a text that says otherwise: libvirt confirms uploads whose
// last writes failed. The head goes last, and is read back. report is told how far it is.
//
// When that fails, the volume can't be used any more: a next attempt needs a new one.
func (h *Host) Upload(ctx context.Context, pool, name string, image io.Reader, report func(Progress)) (length int64, err error) {
	op := fmt.Sprintf("upload volume %s in storage pool %s", name, pool)
	v, err := onVolume(ctx, h, op, pool, name, func(_ *libvirt.Libvirt, v libvirt.StorageVol) (libvirt.StorageVol, error) { return v, nil })
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := h.openStream(ctx)
	if err != nil {
		return 0, h.failed(op, err)
	}
	defer func() { _ = c.Close() }()
	u := upload{host: h, conn: c, volume: v, report: report}
	if length, err = u.body(image); err == nil {
		err = u.finish(ctx, length)
	}
	if err != nil {
		return length, h.failed(op, fmt.Errorf("%w (after %d bytes)", err, length))
	}
	return length, nil
}

// openStream dials a connection for one transfer.
func (h *Host) openStream(ctx context.Context) (*stream.Conn, error) {
	d, err := dialer(h.uri)
	if err != nil {
		return nil, err
	}
	dialled, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := within(dialled, d.Dial)
	if err != nil {
		return nil, &UnreachableError{err}
	}
	c, err := stream.Open(ctx, conn, string(libvirt.RemoteURI(h.uri)))
	if err != nil {
		return nil, &UnreachableError{err}
	}
	return c, nil
}

// within gives up what takes no context; a connection that comes too late is closed.
func within[T io.Closer](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := f()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.err == nil {
				_ = a.value.Close()
			}
		}()
		var none T
		return none, context.Cause(ctx)
	}
}

// upload is one on its way.
type upload struct {
	host   *Host
	conn   *stream.Conn
	volume libvirt.StorageVol
	report func(Progress)

	head []byte
	told time.Time
}

// body writes all but the head, in whose place it says that the image is not finished.
func (u *upload) body(image io.Reader) (length int64, err error) {
	u.head = make([]byte, headSize)
	n, err := io.ReadFull(image, u.head)
	u.head = u.head[:n]
	short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !short {
		return 0, err
	}
	to, err := u.conn.Upload(u.volume, 0, true)
	if err != nil {
		return 0, err
	}
	if _, err := to.Write(unfinished[:n]); err != nil {
		return 0, err
	}
	length = int64(n)
	if !short {
		var rest int64
		rest, err = stream.CopySparse(to, image, func(done int64) { u.tell(int64(n) + done) })
		length += rest
	}
	if err != nil {
		return length, err
	}
	return length, to.Finish()
}

func (u *upload) tell(done int64) {
	if now := time.Now(); now.Sub(u.told) >= progressTime {
		u.told = now
		u.report(Progress{Done: done})
	}
}

// finish looks whether all that was written is there, writes the head, and looks again.
func (u *upload) finish(ctx context.Context, length int64) error {
	is, err := u.host.Volume(ctx, u.volume.Pool, u.volume.Name)
	if err != nil {
		return err
	}
	if is.Physical != length {
		return fmt.Errorf("%w: it has %d bytes of %d", ErrTorn, is.Physical, length)
	}
	to, err := u.conn.Upload(u.volume, 0, false)
	if err != nil {
		return err
	}
	if _, err := to.Write(u.head); err != nil {
		return err
	}
	if err := to.Finish(); err != nil {
		return err
	}
	var back bytes.Buffer
	if err := u.conn.Download(&back, u.volume, 0, int64(len(u.head))); err != nil {
		return err
	}
	if !bytes.Equal(back.Bytes(), u.head) {
		return fmt.Errorf("%w: its first %d bytes are others", ErrTorn, len(u.head))
	}
	return nil
}
