package guard

import (
	"context"
	"errors"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Volumes is a host that tells where its storage volumes are.
type Volumes interface {
	Volume(ctx context.Context, pool, name string) (host.StorageVolume, error)
}

// WithPaths gives a domain's XML with the paths of the disks that name a storage pool and a volume, as domains of other tools do: images, and
// what virtclaim notes of them, are known by their paths. What is in no pool stays as it is.
func WithPaths(ctx context.Context, h Volumes, text string) (string, error) {
	return domainxml.WithPaths(text, func(pool, name string) (kind, path string, err error) {
		v, err := described(h.Volume(ctx, pool, name))
		if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrNoPool) || err == nil && v.Type == "network" {
			err = domainxml.ErrNoPath
		}
		return v.Type, v.Path, err
	})
}

// located is the file behind a source that names a pool and a volume.
func located(ctx context.Context, h Volumes, i volume.Image) (volume.Image, error) {
	pool, name, _ := strings.Cut(i.Name, "/")
	v, err := described(h.Volume(ctx, pool, name))
	i.Type, i.Name = "file", v.Path
	return i, err
}

// described leaves out the error of a volume whose head libvirt can't follow: where it is, is known, and its guest must not stop all others.
func described(v host.StorageVolume, err error) (host.StorageVolume, error) {
	if errors.Is(err, host.ErrUndescribed) && v.Path != "" {
		err = nil
	}
	return v, err
}
