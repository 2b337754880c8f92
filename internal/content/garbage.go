package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// CollectGarbage deletes the shared image of that name when it has no overlays any more, or what an interrupted creation has left of it, and other
// shared images of the pool whose last disk an interrupted destroy has deleted. References are not counted, because a counter would be wrong after the first crash: the headers of all volumes and all
// domains are searched instead.
func (m *Creator) CollectGarbage(ctx context.Context, key string, h Host, pool, name string) error {
	err := m.locked(ctx, key, h, func(ctx context.Context) error { return m.collect(ctx, key, h, pool, name) })
	if err != nil {
		return fmt.Errorf("the shared image %s in storage pool %s: %w", name, pool, err)
	}
	names, err := h.VolumeNames(ctx, pool)
	for _, other := range names {
		if other == name || !IsBase(other) {
			continue
		}
		// One without a record has no disk of this host yet, or is another host's.
		if _, id, failed := recordOf(ctx, h, baseUsage(pool, other)); failed == nil && id != "" {
			_ = m.locked(ctx, key, h, func(ctx context.Context) error { return m.collect(ctx, key, h, pool, other) }) // the next destroy tries again
		}
	}
	return err
}

func (m *Creator) collect(ctx context.Context, key string, h Host, pool, name string) error {
	left, err := open(ctx, h, pool, name)
	if err == nil {
		return left.removeAbandoned(ctx)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	v, err := h.Volume(ctx, pool, name)
	if err != nil {
		return ignoreNotFound(err)
	}
	opened, err := openedOn(ctx, h)
	if err != nil || opened.hasFile(name) {
		return err
	}
	volumes, err := h.Overlays(ctx)
	if err != nil {
		return err
	}
	above, err := (&master{host: h, path: v.Path}).overlays(ctx, h, volumes, opened, openedImage.isNoted)
	if err != nil || len(above) > 0 {
		return err
	}
	if err := m.checkHeld(ctx, key, h); err != nil { // reading all headers may have taken longer than the lock's lease
		return err
	}
	if err := forgetBase(ctx, h, pool, name); err != nil {
		return err
	}
	return ignoreNotFound(h.DeleteVolume(ctx, pool, name))
}

// removeAbandoned removes what an interrupted creation of a base has left, unless its domain is active: then its creator is alive, or the
// next creation of this base detects that it is dead.
func (j *journal) removeAbandoned(ctx context.Context) error {
	state, err := j.host.State(ctx, j.UUID)
	if err != nil || state.Active {
		return ignoreNotFound(err)
	}
	return j.discard(ctx)
}

// hasFile reports whether a domain has the base in a chain, by its path or as a volume of a pool. No other file has its name.
func (all Opened) hasFile(name string) bool {
	return slices.ContainsFunc(all, func(i openedImage) bool { return path.Base(i.Name) == name })
}
