package image

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// stream returns a reader of what produce writes, with only a small buffer. Read returns io.EOF after produce has returned without an
// error, and its error otherwise. meter counts how much of the source is read. A Read ends with ctx at once, even if produce is blocked in
// a call without a context, and Close ends ctx with cancel.
func stream(ctx context.Context, cancel context.CancelFunc, meter *meter, produce func(w io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	// Only the first error with which a pipe is closed counts.
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	go func() {
		err := produce(w)
		stop()
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		_ = w.CloseWithError(notTheEnd(err))
		cancel()
	}()
	return streamReader{r, meter, cancel}
}

// notTheEnd wraps an error that may be io.EOF, such as that of a connection, so that the caller does not take it for the end of the
// content.
func notTheEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return brokenOff{err}
	}
	return err
}

// brokenOff is the same error, but not io.EOF or io.ErrUnexpectedEOF.
type brokenOff struct{ error }

func (b brokenOff) Is(target error) bool {
	return target != io.EOF && target != io.ErrUnexpectedEOF && errors.Is(b.error, target)
}

func (b brokenOff) As(target any) bool { return errors.As(b.error, target) }

type streamReader struct {
	*io.PipeReader
	*meter
	cancel context.CancelFunc
}

func (s streamReader) Close() error {
	s.cancel()
	return s.PipeReader.Close()
}

// meter counts how many bytes of a source are read.
type meter struct{ done, all atomic.Int64 }

// Progress returns how many bytes of the source, packed or not, were read, and how many there are; 0 if that is unknown.
func (m *meter) Progress() (done, all int64) { return m.done.Load(), m.all.Load() }

// of counts what is read of a source with that many bytes; negative if that is unknown.
func (m *meter) of(r io.Reader, bytes int64) io.Reader {
	m.all.Store(max(0, bytes))
	return meteredReader{r, m}
}

type meteredReader struct {
	io.Reader
	meter *meter
}

func (r meteredReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.meter.done.Add(int64(n))
	return n, err
}

// contextReader ends with its context, for a reader without one.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}
