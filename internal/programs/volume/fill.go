package volume

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync/atomic"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// Claim is a mounted claim, and how it is filled.
type Claim struct {
	// Path is where the claim is mounted: a folder, or a block device.
	Path string
	// Scratch is a folder for what of an image must be kept until its turn; empty if there is none.
	Scratch string
	// Overwrite is whether a volume that has content is filled.
	Overwrite bool
}

// checkUnused is ErrFilled if the claim has content.
func (c Claim) checkUnused() error {
	v, err := openVolume(c.Path)
	if err != nil {
		return err
	}
	return errors.Join(v.checkUnused(), v.Close())
}

// fill writes an unpacked image of that length into the claim; a negative length is unknown. If it fails, the volume is as it was before,
// or marked as incomplete, so that it can be filled again. written counts what is done of the volume in bytes. digest is called when all of
// the image is read; its error is that of an image which must not be taken.
func (c Claim) fill(ctx context.Context, r io.Reader, length int64, written *atomic.Int64,
	digest func() (string, error),
) (f podwire.Filled, err error) {
	head, err := readHead(r)
	if err != nil {
		return f, err
	}
	is, err := image.Probe(head)
	if err == nil && is.Format != raw {
		err = checkReadable(head)
	}
	if err != nil {
		return f, err
	}
	v, err := openVolume(c.Path)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	f = podwire.Filled{Format: is.Format, Capacity: is.Capacity}
	if is.Format == raw {
		f.Capacity = max(0, length)
	}
	if f.Capacity > v.room {
		return f, fmt.Errorf("%w: it has %d bytes, and there is room for %d", ErrTooLarge, f.Capacity, v.room)
	}
	if err := v.checkUnused(); err != nil && (!c.Overwrite || !errors.Is(err, ErrFilled)) {
		return f, err
	}
	if err := removeRecord(c.Path); err != nil {
		return f, err
	}
	if err := v.begin(); err != nil {
		return f, err
	}
	w := &writer{ctx: ctx, volume: v, written: written}
	whole := io.MultiReader(bytes.NewReader(head), r)
	if is.Format == raw {
		err = w.copy(whole)
	} else {
		err = w.convert(image.Bounded(whole, head), c.Scratch)
	}
	if err != nil {
		return f, err
	}
	f.Capacity = w.at
	if f.Digest, err = digest(); err != nil {
		return f, err
	}
	if err := writeRecord(c.Path, f); err != nil {
		return f, err
	}
	return f, v.finish(w.head, w.at)
}

const raw = "raw"

// readHead reads what image.Probe needs.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, image.HeadSize)
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// writer writes a disk from front to back, but for its head.
type writer struct {
	ctx     context.Context
	volume  *volume
	head    []byte
	at      int64
	flushed int64
	written *atomic.Int64
}

const (
	// chunk is how many bytes are written at once.
	chunk = 1 << 20
	// flushEvery is how many bytes the disk may lag behind, so that the sync at the end is short.
	flushEvery = 8 << 20
	// block is how many bytes are a hole if all are zeros.
	block = 1 << blockBits
)

// copy writes all of a raw image.
func (w *writer) copy(r io.Reader) error {
	buffer := make([]byte, chunk)
	for {
		n, err := io.ReadFull(r, buffer)
		if failed := w.write(buffer[:n]); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write writes the next bytes of the disk.
func (w *writer) write(p []byte) error {
	if err := w.advance(int64(len(p))); err != nil {
		return err
	}
	from := w.at - int64(len(p))
	if from < headSize {
		n := min(int64(len(p)), headSize-from)
		w.head = append(w.head, p[:n]...)
		p, from = p[n:], from+n
	}
	for len(p) > 0 {
		n, blank := run(p)
		var err error
		if blank {
			err = w.volume.zero(from, int64(n))
		} else {
			_, err = w.volume.WriteAt(p[:n], from)
		}
		if err != nil {
			return err
		}
		p, from = p[n:], from+int64(n)
	}
	return nil
}

// skip goes on after n zeros.
func (w *writer) skip(n int64) error {
	if part := min(n, headSize-w.at); part > 0 {
		if err := w.write(zeros[:part]); err != nil {
			return err
		}
		n -= part
	}
	if err := w.advance(n); err != nil {
		return err
	}
	return w.volume.zero(w.at-n, n)
}

func (w *writer) advance(n int64) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.at += n; w.at > w.volume.room {
		return fmt.Errorf("%w: there is room for %d bytes", ErrTooLarge, w.volume.room)
	}
	if w.written != nil {
		w.written.Store(w.at)
	}
	if w.at-w.flushed >= flushEvery {
		w.volume.flush(w.flushed, w.at-w.flushed)
		w.flushed = w.at
	}
	return nil
}

// run returns how many bytes at the beginning of p are blocks of zeros, or blocks of something else.
func run(p []byte) (n int, blank bool) {
	for n < len(p) {
		next := min(n+block, len(p))
		is := isZero(p[n:next])
		if n > 0 && is != blank {
			break
		}
		n, blank = next, is
	}
	return n, blank
}

func isZero(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), len(zeros))
		if !bytes.Equal(p[:n], zeros[:n]) {
			return false
		}
		p = p[n:]
	}
	return true
}

// hashed hashes what is read.
type hashed struct {
	io.Reader
	hash hash.Hash
}

func newHashed(r io.Reader) *hashed { return &hashed{r, sha256.New()} }

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.hash.Write(p[:n])
	return n, err
}

func (h *hashed) digest() string { return "sha256:" + hex.EncodeToString(h.hash.Sum(nil)) }
