package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Container is a disk image in a container image.
type Container struct {
	// Reference is repository:tag or repository@sha256:hex.
	Reference string
	// Path is the path of the file in the container image; empty for the only one below /disk.
	Path string
	// Arch selects one image of an index, in OCI's notation: amd64, arm64, arm/v7. Empty selects the first.
	Arch string
	// Username and Password are for the registry; without them, Docker's configuration is used.
	Username, Password string
	// Limit is the maximal number of bytes of the unpacked disk; 0 means MaxUnpacked.
	Limit int64
}

// Check checks the reference offline.
func (c Container) Check() error {
	if (c.Username == "") != (c.Password == "") {
		return errors.New("a user name and a password belong together: there is only one of them")
	}
	_, err := c.parse()
	return err
}

// parse parses the reference. Its errors do not contain it: in the form of a URL it may contain a password.
func (c Container) parse() (name.Reference, error) {
	reference, err := name.ParseReference(c.Reference)
	if err != nil || strings.Contains(c.Reference, "://") {
		return nil,
			errors.New("it does not name a container image. It should be like quay.io/owner/name:tag or quay.io/owner/name@sha256:<64 " +
				"hexadecimal digits>, without a scheme")
	}
	return reference, nil
}

// IsPinned returns the digest in the reference, whose content never changes; ok is false if it has none.
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

// Resolve queries the registry for the present digest of the reference: that of an index, if it names one. The digest of a pinned reference
// is returned unchanged, if the registry has it and the user may read it.
func (c Container) Resolve(ctx context.Context) (digest string, err error) {
	reference, r, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	if digest, err = r.resolve(ctx, reference.Identifier()); err != nil {
		return "", c.explain(err)
	}
	if pinned, ok := c.IsPinned(); ok {
		digest = pinned
	}
	return digest, nil
}

// Open returns a reader of the unpacked disk in the image with that digest. It returns io.EOF only after all layers that it read were
// verified; an error is ErrUntrusted if the content is the cause. A blocked Read ends with ctx.
func (c Container) Open(ctx context.Context, digest string) (io.ReadCloser, error) {
	hash, err := parseDigest(digest)
	if err != nil {
		return nil, err
	}
	_, r, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	found, err := c.find(ctx, r, hash)
	if err != nil {
		return nil, c.explain(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	layers := make([]Layer, len(found.Layers))
	for n, d := range found.Layers {
		layers[n] = r.layer(ctx, d)
	}
	m := &meter{}
	return stream(ctx, cancel, m, func(w io.Writer) error {
		err := FindDisk(layers, c.Path, func(f File) error {
			f.Reader = m.of(f.Reader, f.Size)
			return c.copy(w, f)
		})
		return c.explain(redact(err, r.secrets...))
	}), nil
}

func parseDigest(digest string) (v1.Hash, error) {
	hash, err := v1.NewHash(digest)
	if err != nil || hashes[hash.Algorithm] == nil {
		return hash, fmt.Errorf("%q is no digest. It should be like sha256:<64 hexadecimal digits>", digest)
	}
	return hash, nil
}

// find returns the manifest of the image, also if the digest is that of an index.
func (c Container) find(ctx context.Context, r *registry, digest v1.Hash) (manifest, error) {
	m, err := r.manifest(ctx, digest, -1)
	if err != nil || len(m.Manifests) == 0 {
		return m, err
	}
	child, err := m.choose(c.Arch)
	if err != nil {
		return m, err
	}
	if m, err = r.manifest(ctx, child.Digest, child.Size); err == nil && len(m.Manifests) > 0 {
		err = fmt.Errorf("%w: its index names another index", ErrUntrusted)
	}
	return m, err
}

func (c Container) copy(w io.Writer, f File) error {
	if limit := cmp.Or(c.Limit, MaxUnpacked); f.Size > limit {
		return fmt.Errorf("%w: %q has %d bytes, and at most %d are read for a volume of this size", ErrUntrusted, "/"+f.Path, f.Size, limit)
	}
	if err := unpack(w, f, c.Limit); err != nil {
		return fmt.Errorf("%q: %w", "/"+f.Path, err)
	}
	return nil
}

func (c Container) dial(ctx context.Context) (name.Reference, *registry, error) {
	if err := c.Check(); err != nil {
		return nil, nil, err
	}
	reference, err := c.parse()
	if err != nil {
		return nil, nil, err
	}
	auth := login{Authenticator: &authn.Basic{Username: c.Username, Password: c.Password}}
	if c.Username == "" {
		if auth, err = dockerLogin(ctx, reference.Context()); err != nil {
			return nil, nil, c.explain(err)
		}
	}
	_, pinned := reference.(name.Digest)
	r, err := dial(ctx, reference.Context(), auth, pinned)
	if err != nil {
		return nil, nil, c.explain(err)
	}
	r.mostOfLayer = c.mostOfLayer()
	return reference, r, nil
}

// besides is how many bytes a layer may have in addition to a disk of the maximal size.
const besides = 1 << 30

// mostOfLayer is the maximal number of bytes of a layer. A small Limit does not reduce it, because it is for the disk alone, and other
// files of the layer are not written.
func (c Container) mostOfLayer() int64 { return max(c.Limit, MaxUnpacked) + besides }

func (c Container) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("container image %s: %w", c.Reference, err)
}
