package guard

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Volumes is a host that tells where its storage volumes are.
type Volumes interface {
	Volume(ctx context.Context, pool, name string) (host.StorageVolume, error)
	Pool(ctx context.Context, name string) (host.Pool, error)
}

// domainsOf are the domains of a host, with the paths of their disks.
func domainsOf(ctx context.Context, h Looker) ([]host.Domain, error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(domains)
	for n := range all {
		for _, text := range []*string{&all[n].Live, &all[n].Saved, &all[n].Stored} {
			if *text, err = WithPaths(ctx, h, *text); err != nil {
				return nil, fmt.Errorf("what the disks of domain %s are: %w", all[n].Name, err)
			}
		}
	}
	return all, nil
}

// WithPaths gives a domain's XML with the paths of the disks that name a storage pool and a volume, as domains of other tools do: images, and
// what virtclaim notes of them, are known by their paths, also that of a file which was deleted from its folder. What is in no pool stays as it is.
func WithPaths(ctx context.Context, h Volumes, text string) (string, error) {
	return domainxml.WithPaths(text, func(pool, name string) (kind, at string, err error) {
		v, err := described(h.Volume(ctx, pool, name))
		if errors.Is(err, host.ErrNotFound) && !errors.Is(err, host.ErrNoPool) {
			if in, err := h.Pool(ctx, pool); err == nil && in.Type == "dir" {
				return "file", path.Join(in.Path, name), nil
			}
		}
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
