package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
)

// Container is the image of a disk in a container image.
type Container struct {
	// Reference is as a user writes it: repository:tag or repository@sha256:hex.
	Reference string
	// Path is the file's in the image; empty for the only one below /disk.
	Path string
	// Arch is of an image for several, as OCI calls it: amd64, arm64, arm/v7. Empty takes the first.
	Arch string
	// Username and Password are for the registry; without them, Docker's configuration is asked.
	Username, Password string
	// Limit is how many bytes the disk may have, unpacked; 0 is MaxUnpacked.
	Limit int64
}

// Check tells what is wrong with the reference, without asking anybody.
func (c Container) Check() error {
	_, err := c.parse()
	return err
}

// parse does not repeat the reference in its errors: one that is written like a URL may hold a password.
func (c Container) parse() (name.Reference, error) {
	reference, err := name.ParseReference(c.Reference)
	if err != nil {
		return nil, errors.New("it does not name a container image. It should be like quay.io/owner/name:tag or quay.io/owner/name@sha256:<64 hexadecimal digits>, without a scheme")
	}
	return reference, nil
}

// IsPinned tells whether the reference names a digest, which never changes what it stands for, and which.
func (c Container) IsPinned() (digest string, ok bool) {
	reference, err := c.parse()
	if err != nil {
		return "", false
	}
	pinned, ok := reference.(name.Digest)
	if !ok {
		return "", false
	}
	return pinned.DigestStr(), true
}

// Resolve asks the registry which digest the reference stands for now: that of an index, if it names one.
func (c Container) Resolve(ctx context.Context) (digest string, err error) {
	return "", fmt.Errorf("%w: %w", errors.ErrUnsupported, ctx.Err())
}

// Open gives the disk of the image that has the digest, unpacked. io.EOF comes after all layers that were read are proven to
// be the image's.
func (c Container) Open(ctx context.Context, digest string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("%w: %s: %w", errors.ErrUnsupported, digest, ctx.Err())
}
