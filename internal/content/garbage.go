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

// CollectGarbage deletes the shared image of that name when it has no overlays any more, or what an interrupted creation has left
// of it. References are not counted, because a counter would be wrong after the first crash: the headers of all volumes and all
// domains are searched instead.
func (m *Creator) CollectGarbage(ctx context.Context, key string, h Host, pool, name string) error {
	// Uses by other paths are checked before the lock is acquired: that reads files and can take long, and other owners' domains ignore the lock.
	v, err := h.Volume(ctx, pool, name)
	if err == nil {
		var used bool
		if used, err = isUsed(ctx, h, v); used {
			return err
		}
	}
	if ignoreNotFound(err) == nil {
		err = m.locked(ctx, key, h, func(ctx context.Context) error { return m.collect(ctx, key, h, pool, name) })
	}
	if err != nil {
		return fmt.Errorf("the shared image %s in storage pool %s: %w", name, pool, err)
	}
	return nil
}

func (m *Creator) collect(ctx context.Context, key string, h Host, pool, name string) error {
	left, err := open(ctx, h, pool, name)
	if err == nil {
		return left.removeAbandoned(ctx)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	if _, err := h.Volume(ctx, pool, name); err != nil {
		return ignoreNotFound(err)
	}
	above, err := overlays(ctx, h, baseName(name))
	if err != nil || len(above) > 0 {
		return err
	}
	if opened, err := isOpened(ctx, h, name); err != nil || opened {
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

// isUsed reports whether a volume is an overlay of the base, by any path, or a domain has an overlay of it outside of all storage pools.
func isUsed(ctx context.Context, h Host, base host.StorageVolume) (bool, error) {
	above, err := overlays(ctx, h, newMasterFile(h, base.Path))
	if err != nil || len(above) > 0 {
		return len(above) > 0, err
	}
	linked, over, err := strangers(ctx, h, base.Path)
	return len(linked)+len(over) > 0, err
}

// isOpened reports whether a domain has the base in a chain, by its path or as a volume of a pool. No other file has its name.
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
			from, err := domainxml.Read(text)
			if err != nil {
				return false, fmt.Errorf("domain %s: %w", d.Name, err)
			}
			for _, a := range from.Attached() {
				if slices.ContainsFunc(a.Volume.Images, func(i volume.Image) bool { return path.Base(i.Name) == name }) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// baseName is the file name of a shared image. Overlays are found by it, because the path changes when the pool's folder is moved.
type baseName string

func (b baseName) mayBeNamed(_ context.Context, named string, overlay host.StorageVolume) (bool, error) {
	name := string(b)
	is := path.Base(strings.TrimPrefix(named, "file:")) == name || strings.HasPrefix(named, "json:") && strings.Contains(named, name)
	return is && path.Base(overlay.Path) != name, nil
}

func (b baseName) isNamed(ctx context.Context, named string, overlay host.StorageVolume) (bool, error) {
	return b.mayBeNamed(ctx, named, overlay)
}
