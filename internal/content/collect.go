package content

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

// Collect deletes the shared images of a pool that nothing is over any more, and what creations of them have left that were
// interrupted. There are no counters, which would be wrong after the first crash: the truth is in the heads of all volumes and
// in all domains.
func (m *Maker) Collect(ctx context.Context, key string, h Host, pool string) error {
	bases, err := basesIn(ctx, h, pool)
	if err != nil || len(bases) == 0 {
		return err
	}
	return m.locked(ctx, key, h, func(ctx context.Context) error {
		for _, base := range bases {
			if err := collect(ctx, h, base); err != nil {
				return fmt.Errorf("the shared image %s in storage pool %s: %w", base.Name, pool, err)
			}
		}
		return nil
	})
}

func basesIn(ctx context.Context, h Host, pool string) ([]host.StorageVolume, error) {
	all, err := h.Volumes(ctx, pool)
	return slices.DeleteFunc(all, func(v host.StorageVolume) bool { return !strings.HasPrefix(v.Name, basePrefix) }), err
}

func collect(ctx context.Context, h Host, base host.StorageVolume) error {
	left, err := open(ctx, h, base.Pool, base.Name)
	if err == nil {
		state, err := h.State(ctx, left.UUID)
		if errors.Is(err, host.ErrNotFound) || err == nil && state.Active {
			return nil // it is being made, or has just been
		}
		if err != nil {
			return err
		}
		return left.discard(ctx)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	overlays, err := h.Overlays(ctx, base.Path)
	if err != nil || len(overlays) > 0 {
		return err
	}
	if used, err := isOpened(ctx, h, base.Name); err != nil || used {
		return err
	}
	if err := h.DeleteVolume(ctx, base.Pool, base.Name); !errors.Is(err, host.ErrNotFound) {
		return err
	}
	return nil
}

// isOpened tells whether a domain has a base in a chain, by its path or as a volume of a pool. No other file has its name.
func isOpened(ctx context.Context, h Host, name string) (bool, error) {
	domains, err := h.Domains(ctx)
	if err != nil {
		return false, err
	}
	for _, d := range domains {
		for _, text := range []string{d.Live, d.Saved, d.Stored} {
			if text == "" {
				continue
			}
			attached, _, err := domainxml.AttachedTo(text)
			if err != nil {
				return false, fmt.Errorf("domain %s: %w", d.Name, err)
			}
			for _, a := range attached {
				if slices.ContainsFunc(a.Volume.Images, func(i volume.Image) bool { return path.Base(i.Name) == name }) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
