package image

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// stream gives what produce writes to be read, with nothing kept but a buffer. The reader gets io.EOF after produce is done
// without an error, and its error otherwise. meter tells how much of the source is read. The end of ctx ends a Read at once, even where produce is stuck in something that
// knows no context, and Close ends ctx with cancel.
func stream(ctx context.Context, cancel context.CancelFunc, meter *meter, produce func(w io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	// The first error that a pipe is closed with is the one that counts.
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

// notTheEnd is an error that nobody takes for the end of what is read, though it may come from one: that of a connection.
func notTheEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return brokenOff{err}
	}
	return err
}

// brokenOff is all that the error is, but an end.
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

// Progress is how many bytes of the source are read, as they are stored there, and how many there are; 0 if nobody knows.
func (m *meter) Progress() (done, all int64) { return m.done.Load(), m.all.Load() }

// of counts what is read of a source that has so many bytes; less than 0 if it does not tell.
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

// contextReader ends with its context where the reader behind it knows none.
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
