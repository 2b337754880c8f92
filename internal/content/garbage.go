package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// CollectGarbage deletes the shared images of those names, the lowest one first, and those below, as far as they have no overlays any more,
// or what an interrupted creation has left of them, and other shared images of the pool whose last disk an interrupted destroy has deleted.
// References are not counted, because a counter would be wrong after the first crash: the headers of all volumes and all domains are
// searched instead.
func (m *Creator) CollectGarbage(ctx context.Context, key string, h Host, pool string, names ...string) error {
	err := m.locked(ctx, key, h, func(ctx context.Context) error {
		g := garbage{creator: m, key: key, host: h, pool: pool}
		for _, name := range slices.Backward(names) {
			if err := g.collectFrom(ctx, name); err != nil {
				return err
			}
		}
		g.collectOthers(ctx, names)
		return nil
	})
	if err != nil {
		return fmt.Errorf("the shared images %s in storage pool %s: %w", strings.Join(names, ", "), pool, err)
	}
	return nil
}

// garbage is what a host has while its mutex is held. A pool may have a hundred images for one disk, and a host is asked for all of them at
// once.
type garbage struct {
	creator *Creator
	key     string
	host    Host
	pool    string
	// isRead is whether the others were.
	isRead  bool
	domains []host.Domain
	opened  Opened
	volumes []host.StorageVolume
	// records are the UUIDs of secrets, by what they are of.
	records map[string]string
}

// collectOthers deletes the other shared images of the pool that have been in use, and are not any more. Those that fail are tried again by
// the next destroy.
func (g *garbage) collectOthers(ctx context.Context, names []string) {
	all, err := g.host.VolumeNames(ctx, g.pool)
	others := slices.DeleteFunc(all, func(name string) bool { return !IsBase(name) || slices.Contains(names, name) })
	if err != nil || len(others) == 0 || g.read(ctx) != nil {
		return
	}
	for _, other := range slices.DeleteFunc(others, g.isBelowShared) { // those go with the one above
		// One without a record has no disk of this host yet, or is another host's.
		if _, id, failed := recordOf(ctx, g.host, baseUsage(g.pool, other)); failed == nil && id != "" {
			_ = g.collectFrom(ctx, other)
		}
	}
}

// isBelowShared reports whether a shared image is over another one. Unlike that of a disk, its head was written by no guest.
func (g *garbage) isBelowShared(name string) bool {
	return slices.ContainsFunc(g.volumes, func(v host.StorageVolume) bool {
		return v.Pool == g.pool && IsBase(v.Name) && nameOf(v.Backing) == name
	})
}

// collectFrom deletes a shared image, and those below.
func (g *garbage) collectFrom(ctx context.Context, name string) (err error) {
	for name != "" && err == nil {
		name, err = g.collect(ctx, name)
	}
	return err
}

// collect deletes a shared image without overlays, and returns the name of the one below if it did.
func (g *garbage) collect(ctx context.Context, name string) (below string, err error) {
	left, err := open(ctx, g.host, g.pool, name)
	if err == nil {
		return "", left.removeAbandoned(ctx)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return "", err
	}
	v, err := g.host.Volume(ctx, g.pool, name)
	if err != nil {
		return "", ignoreNotFound(err)
	}
	if err := g.read(ctx); err != nil {
		return "", err
	}
	of := &master{host: g.host, path: v.Path}
	used, err := g.isAwaited(ctx, of)
	if err == nil && !used {
		used, err = of.isOpened(ctx, g.opened)
	}
	if err != nil || used {
		return "", err
	}
	above, err := of.overlays(ctx, g.host, g.volumes, g.opened, openedImage.isNoted)
	if err != nil || len(above) > 0 {
		return "", err
	}
	if err := g.creator.checkHeld(ctx, g.key, g.host); err != nil { // reading all headers may have taken longer than the lock's lease
		return "", err
	}
	if _, _, err := recordOf(ctx, g.host, baseUsage(g.pool, name)); err != nil { // as that of a newer provider
		return "", err
	}
	if err := errors.Join(forgetImages(ctx, g.host, g.records, g.pool, name), forgetBase(ctx, g.host, g.pool, name)); err != nil {
		return "", err
	}
	g.volumes = slices.DeleteFunc(g.volumes, func(other host.StorageVolume) bool { return other.Path == v.Path })
	if IsBase(v.Backing) {
		below = path.Base(v.Backing)
	}
	return below, ignoreNotFound(g.host.DeleteVolume(ctx, g.pool, name))
}

// read reads all domains, and the heads of all volumes, once.
func (g *garbage) read(ctx context.Context) (err error) {
	if g.isRead {
		return nil
	}
	if g.domains, err = g.host.Domains(ctx); err == nil {
		var read []domainxml.Definitions
		read, err = guard.Read(ctx, g.host, g.domains)
		g.opened = OpenedBy(read)
	}
	if err == nil {
		g.volumes, err = g.host.Overlays(ctx)
	}
	if err == nil {
		g.records, err = g.host.SecretsOfVolumes(ctx)
	}
	g.isRead = err == nil
	return err
}

// isAwaited reports whether a disk over the shared image, or over one above, is being created. Its creator shows that while it has the
// mutex (overBase).
func (g *garbage) isAwaited(ctx context.Context, base *master) (bool, error) {
	for _, d := range g.domains {
		if !isJournal(d.Name) || d.Live == "" {
			continue
		}
		note, _, err := domainxml.ParseJournal(d.Live)
		if err == nil && (note.Target != "" || !slices.Contains(note.Bases, path.Base(base.path))) {
			continue
		}
		is := true
		if err == nil && note.Pool != g.pool {
			is, err = g.isOver(ctx, note.Pool, base)
		}
		if is || err != nil {
			return true, err
		}
	}
	return false, nil
}

// isOver reports whether another pool, whose images have the same names, may be over the folder of the image.
func (g *garbage) isOver(ctx context.Context, pool string, base *master) (bool, error) {
	in, err := g.host.Pool(ctx, pool)
	if err != nil || path.Clean(in.Path) == path.Dir(path.Clean(base.path)) {
		return err == nil, ignoreNotFound(err)
	}
	v, err := g.host.Volume(ctx, pool, path.Base(base.path))
	if err != nil {
		return false, ignoreNotFound(err)
	}
	return base.mayBe(ctx, v.Path)
}

// removeAbandoned removes what an interrupted creation of a base has left, unless its creator's domain is active: then its creator is
// alive, or the next creation of this base detects that it is dead.
func (j *journal) removeAbandoned(ctx context.Context) error {
	active, err := j.isActive(ctx)
	if err != nil || active {
		return ignoreNotFound(err)
	}
	return j.removeWithVolume(ctx)
}
