package image

import (
	"context"
	"fmt"
	"io"
)

// Body is an image that someone sends.
type Body struct {
	io.Reader
	// Length is the announced number of bytes, packed or not; negative if it is unknown.
	Length int64
	// Checksum is algorithm:hex of the bytes as they are sent, packed or not; empty if it is unknown.
	Checksum string
	// Limit is the maximal number of bytes of the unpacked image; 0 means MaxUnpacked.
	Limit int64
}

// Open returns a reader of the unpacked image. It returns io.EOF only after all of the body was read, and its length and checksum verified;
// an error is ErrUntrusted if the content is the cause. A blocked Read ends with ctx, though the body's own may go on.
func (b Body) Open(ctx context.Context) (io.ReadCloser, error) {
	want, err := parseChecksum(b.Checksum)
	if err != nil {
		return nil, err
	}
	differs := func(got checksum) error {
		return fmt.Errorf("%w: its checksum is %s, and not %s. It was changed on its way, or is another image", ErrUntrusted, got, want)
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &meter{}
	return stream(ctx, cancel, m, func(w io.Writer) error {
		return unpack(w, verify(contextReader{ctx, m.of(b.Reader, b.Length)}, want, b.Length, differs), b.Limit)
	}), nil
}
