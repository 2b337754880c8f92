package guard

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Volumes is a host that returns the paths of its storage volumes.
type Volumes interface {
	Volume(ctx context.Context, pool, name string) (host.StorageVolume, error)
	Pool(ctx context.Context, name string) (host.Pool, error)
}

// List reads the domains of a host, with paths in place of pool volumes, but for the temporary ones with which virtclaim queries the host.
func List(ctx context.Context, h Looker) (all []domainxml.Definitions, err error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return nil, err
	}
	return Read(ctx, h, domains)
}

// Read is List of domains that a host has listed.
func Read(ctx context.Context, h Volumes, domains []host.Domain) (all []domainxml.Definitions, err error) {
	for _, d := range domains {
		if d.IsProbe() {
			continue
		}
		for _, text := range []*string{&d.Live, &d.Saved, &d.Stored} {
			if *text, err = WithPaths(ctx, h, *text); err != nil {
				return nil, fmt.Errorf("what the disks of domain %s are: %w", d.Name, err)
			}
		}
		read, err := domainxml.ReadDefinitions(d.Name, d.UUID, d.Live, d.Saved, d.Stored)
		if err != nil {
			return nil, err
		}
		all = append(all, read)
	}
	return all, nil
}

// WithPaths returns a domain's XML with the paths of disks that name a storage pool and a volume, as other tools write them, because images
// and their metadata are compared by path. That includes the path of a file that was deleted. Volumes that are in no pool stay unchanged.
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

// located is the file of a source that names a pool and a volume.
func located(ctx context.Context, h Volumes, i volume.Image) (volume.Image, error) {
	pool, name, _ := strings.Cut(i.Name, "/")
	v, err := described(h.Volume(ctx, pool, name))
	i.Type, i.Name = "file", v.Path
	return i, err
}

// described returns nil for the error of a volume whose header libvirt can't parse: the path is known, and the guest that wrote the header
// must not block all other machines.
func described(v host.StorageVolume, err error) (host.StorageVolume, error) {
	if errors.Is(err, host.ErrUndescribed) && v.Path != "" {
		err = nil
	}
	return v, err
}
