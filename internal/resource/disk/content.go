package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// The pull policies of Kubernetes.
const (
	pullIfNotPresent = "IfNotPresent"
	pullAlways       = "Always"
	pullNever        = "Never"
)

// architectures maps libvirt's names to those of container images where they differ.
var architectures = map[string]string{
	"x86_64": "amd64", "i686": "386", "aarch64": "arm64", "armv7l": "arm/v7", "armv6l": "arm/v6", "loongarch64": "loong64",
}

// prepareContent sets the content of a disk with a source outside of the host, and returns the content's digest.
func (r *disk) prepareContent(ctx context.Context, h *host.Host, plan model, s sourceModel, spec *content.Spec) (digest string, err error) {
	switch {
	case s.Container != nil:
		return r.prepareContainer(ctx, h, *s.Container, spec)
	case s.URL != nil:
		return s.URL.prepare(spec)
	case s.File != nil:
		return s.File.prepare(ctx, spec)
	case s.CloudInit != nil:
		return r.prepareSeed(ctx, plan, *s.CloudInit, spec)
	}
	return "", nil
}

func (r *disk) prepareContainer(ctx context.Context, h *host.Host, c containerModel, spec *content.Spec) (digest string, err error) {
	from := image.Container{
		Reference: c.Image.ValueString(), Path: c.Path.ValueString(), Limit: limit(spec.Capacity),
		Username: c.Username.ValueString(), Password: c.PasswordWO.ValueString(),
	}
	policy := c.PullPolicy.ValueString()
	digest, pinned := from.IsPinned()
	switch {
	case policy == pullAlways:
		digest, err = from.Resolve(ctx)
	case !pinned:
		digest, err = r.backend.Tags.Resolve(ctx, from)
	}
	if err != nil {
		return "", err
	}
	spec.Base = &content.Image{
		ID: digest + " /" + from.Path,
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			if policy == pullNever {
				return nil, errors.New("it is not on the host, and with pull_policy = \"Never\" the registry is not asked")
			}
			arch, err := h.Architecture(ctx)
			if err != nil {
				return nil, err
			}
			if from.Arch = arch; architectures[arch] != "" {
				from.Arch = architectures[arch]
			}
			return from.Open(ctx, digest)
		},
	}
	return digest, nil
}

func (u urlModel) prepare(spec *content.Spec) (digest string, err error) {
	from := image.URL{URL: u.URL.ValueString(), Checksum: u.checksum().ValueString(), Limit: limit(spec.Capacity)}
	digest = from.Checksum
	id := digest
	if id == "" {
		id = from.URL
	}
	spec.Content = &content.Image{ID: id, Open: from.Open}
	return digest, nil
}

func (f fileModel) prepare(ctx context.Context, spec *content.Spec) (digest string, err error) {
	from := image.LocalFile{Path: f.Path.ValueString(), Limit: limit(spec.Capacity)}
	if from.Digest, err = from.Hash(ctx); err != nil {
		return "", err
	}
	spec.Content = &content.Image{ID: from.Digest, Open: from.Open}
	return from.Digest, nil
}

func (r *disk) prepareSeed(ctx context.Context, plan model, c cloudInitModel, spec *content.Spec) (digest string, err error) {
	// The versions are read before the content: if a secret changes in between, the older version is stored, and the next plan repairs that. A
	// version newer than the content would never be compared again.
	if digest, err = c.digest(ctx, func() (secretVersions, error) { return r.backend.Cluster() }); err != nil {
		return "", err
	}
	seed, err := r.seed(ctx, plan, c)
	if err != nil {
		return "", err
	}
	iso, err := seed.ISO()
	if err != nil {
		return "", err
	}
	spec.Content = &content.Image{ID: digest, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(iso)), nil
	}}
	return digest, nil
}

// digest hashes the identity of a seed, not its content, which may be secret, and short enough to be guessed.
func (c cloudInitModel) digest(ctx context.Context, versions func() (secretVersions, error)) (string, error) {
	id, err := c.identity(ctx, versions)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// limit is the maximal size in bytes of an unpacked image for a disk of that size. An image file with a format has more bytes than its
// guest sees.
func limit(size int64) int64 {
	if size == 0 {
		return 0
	}
	return max(image.MaxUnpacked, size+size/8)
}
