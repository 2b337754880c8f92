package image

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// LocalFile is an image on the machine that Terraform runs on.
type LocalFile struct {
	Path string
	// Digest is what the file as it is on the disk must hash to, sha256:hex; empty if nothing was planned with it.
	Digest string
	// Limit is how many bytes the image may have, unpacked; 0 is MaxUnpacked.
	Limit int64
}

// Hash is the digest of the file as it is on the disk, sha256:hex.
func (f LocalFile) Hash(ctx context.Context) (digest string, err error) {
	return "", fmt.Errorf("%w: %w", errors.ErrUnsupported, ctx.Err())
}

// Open gives the image's bytes, unpacked. io.EOF comes after all of it was read and the digest is right.
func (f LocalFile) Open(ctx context.Context) (io.ReadCloser, error) {
	return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, ctx.Err())
}
