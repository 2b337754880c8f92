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

// headSize is how many of an image's first bytes are written last: without its header an image can't be opened.
const headSize = 64 << 10

// unfinished are the first bytes of an image until it is complete.
var unfinished = bytes.Repeat([]byte("virtclaim: this upload is not finished\n"), headSize/39+1)[:headSize]

// ErrTorn is the error of an upload that libvirt has confirmed, but not written completely.
var ErrTorn = errors.New("libvirt confirmed the upload, but the volume does not have all of it: its storage may be full")

// Upload is the upload of an image into a volume.
type Upload struct {
	// Pool and Name are those of the volume. It was created for this upload, raw and with a capacity of one byte.
	Pool, Name string
	Image      io.Reader
	// Head returns the first bytes of an image, headSize of them, of which Image has only the rest; it is called after that. It is nil if
	// Image has all.
	Head func() []byte
	// Size returns the size in bytes of the volume for a raw image of that length; nil keeps the length.
	Size func(length int64) int64
	// Verify has all but the header read back, and compared by a SHA-256, before Check is called.
	Verify bool
	// Check is called when all but the header is written, and can read all of the image; its error cancels the upload. It may be nil.
	Check func(length int64, at io.ReaderAt) error
	// BeforeCommit is called when all but the header is written, and the file is open for the header; its error cancels the upload.
	BeforeCommit func(context.Context) error
	// Over is a connection that several uploads share, one after the other, with one context; nil opens one for this upload.
	Over *UploadConn
	// Report is called every other second with the progress. The total is 0, because the length of an image is not known.
	Report func(Progress)
}

// Upload writes an image into a volume. The volume begins with a marker until the upload is verified, because libvirt confirms uploads
// whose last writes have failed. The header is written last, and read back.
//
// After an error the volume can't be used any more: another attempt needs a new one.
func (h *Host) Upload(ctx context.Context, u Upload) error {
	op := fmt.Sprintf("upload volume %s in storage pool %s", u.Name, u.Pool)
	over := u.Over
	if over == nil {
		over = &UploadConn{}
		defer over.Close()
	}
	if err := over.open(ctx, h); err != nil {
		return h.failed(op, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	source := &source{Reader: u.Image}
	u.Image = source
	way := upload{Upload: u, host: h, conn: over.conn, volume: libvirt.StorageVol{Pool: u.Pool, Name: u.Name}}
	if u.Verify {
		way.back = &readBack{host: h, volume: way.volume}
		defer func() {
			cancel()
			way.back.close()
		}()
	}
	go way.reportProgress(ctx)
	err := way.body(ctx)
	if err == nil {
		err = way.finish(ctx)
	}
	if err == nil {
		return nil
	}
	over.Close()
	err = fmt.Errorf("%w (after %d bytes)", err, way.done.Load())
	var content *contentError
	if source.failed || errors.As(err, &content) {
		return h.failedElsewhere(op, err)
	}
	return h.failed(op, err)
}

// UploadConn is a connection for uploads, which is opened for the first one.
type UploadConn struct{ conn *stream.Conn }

// OpenUploads opens the connection for uploads that follow, unless it is open.
func (h *Host) OpenUploads(ctx context.Context, c *UploadConn) error {
	if err := c.open(ctx, h); err != nil {
		return h.failed("open a connection for uploads", err)
	}
	return nil
}

func (c *UploadConn) open(ctx context.Context, h *Host) (err error) {
	if c.conn == nil {
		c.conn, err = h.openStream(ctx)
	}
	return err
}

// Close closes the connection, if there is one.
func (c *UploadConn) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.conn = nil
}

// source records whether reading the image has failed, because errors of other servers look like those of the connection to libvirt. Only
// io.EOF itself is an end, not an error that wraps it.
type source struct {
	io.Reader
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = s.failed || err != nil && err != io.EOF
	return n, err
}

// SkipHole implements stream.Holed.
func (s *source) SkipHole(unit int64) int64 {
	if holed, ok := s.Reader.(stream.Holed); ok {
		return holed.SkipHole(unit)
	}
	return 0
}

// openStream opens a connection for one transfer.
func (h *Host) openStream(ctx context.Context) (*stream.Conn, error) {
	dialled, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return retryStartup(dialled, func() (*stream.Conn, error) { return h.openStreamOnce(ctx, dialled) })
}

func (h *Host) openStreamOnce(ctx, dialled context.Context) (*stream.Conn, error) {
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

// upload is a running upload.
type upload struct {
	Upload
	host   *Host
	conn   *stream.Conn
	volume libvirt.StorageVol

	head []byte
	done atomic.Int64
	// back reads all but the header back; nil unless Verify.
	back *readBack
}

// reportProgress reports the progress until ctx ends, also while the transfer stalls.
func (u *upload) reportProgress(ctx context.Context) {
	tick := time.NewTicker(progressTime) //nolint:forbidigo // it polls nothing: it reports progress
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

// body writes all but the header, in whose place it writes the marker.
func (u *upload) body(ctx context.Context) error {
	n, short, err := headSize, false, error(nil)
	if u.Head == nil {
		u.head = make([]byte, headSize)
		n, short, err = stream.ReadFull(u.Image, u.head)
		u.head = u.head[:n]
	}
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
		if err := u.rest(ctx, to, int64(n)); err != nil {
			return err
		}
	}
	if u.Head != nil {
		u.head = u.Head()
	}
	return to.Finish()
}

// rest writes what is behind the header.
func (u *upload) rest(ctx context.Context, to stream.Sink, from int64) error {
	report := func(done int64) { u.done.Store(from + done) }
	if u.back == nil {
		_, err := stream.CopySparse(to, u.Image, report)
		return err
	}
	sums := newSums(from, func(s stretch) { u.back.add(ctx, s) })
	_, err := stream.CopySparse(summed{to, sums}, u.Image, report)
	if err == nil {
		sums.end()
	}
	return err
}

// finish verifies that all data were written, before the header is written.
func (u *upload) finish(ctx context.Context) error {
	is, err := u.host.Volume(ctx, u.Pool, u.Name)
	if err != nil {
		return err
	}
	length := u.done.Load()
	if is.Physical != length {
		return fmt.Errorf("%w: it has %d bytes of %d", ErrTorn, is.Physical, length)
	}
	if u.back != nil {
		if err := u.back.rest(u.conn); err != nil {
			return err
		}
	}
	if u.Check != nil {
		if err := u.Check(length, uploaded{u}); err != nil {
			return &contentError{err}
		}
	}
	if u.Size != nil && u.Size(length) > length {
		// Before the header is written, because libvirt still takes the volume for raw.
		if err := u.host.ResizeVolume(ctx, u.Pool, u.Name, u.Size(length)); err != nil {
			return err
		}
	}
	return u.finishHead(ctx)
}

// contentError is an error of the uploaded image, not of the host.
type contentError struct{ error }

func (e *contentError) Unwrap() error { return e.error }

// uploaded reads the uploaded image: the header, which is not written yet, and the rest from the volume.
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

// finishHead writes the header, if BeforeCommit agrees, and verifies it. Another process may replace the volume of that name at any time,
// but not a file that was open before BeforeCommit: a process that takes the name over unlinks the file.
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
