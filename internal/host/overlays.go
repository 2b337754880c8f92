package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// Overlays lists the volumes of all pools of the host whose headers reference a backing file, and those that libvirt can't describe, whose
// headers must be read. A pool that can't be listed is an error unless it is not in the host's configured storage. Such a pool is not
// refreshed: libvirt stops one whose folder is gone. The description of a volume at rest may be two seconds old (removalTrust).
func (h *Host) Overlays(ctx context.Context) ([]StorageVolume, error) {
	storage := slices.Collect(maps.Values(h.registry.Storage(h.Key)))
	return h.overlays.get(ctx, func(ctx context.Context) ([]StorageVolume, error) {
		return callOn(ctx, h, "look for overlays", func(c *conn) ([]StorageVolume, error) {
			return listOverlays(c, 0, removalTrust, func(p libvirt.StoragePool) (isNeeded bool, err error) {
				if isNeeded = len(storage) == 0 || slices.Contains(storage, p.Name); isNeeded {
					err = refresh(ctx, c.Libvirt, p)
				}
				return isNeeded, err
			})
		})
	})
}

// KnownOverlays is Overlays as of libvirt's last refresh, for the start of a machine, which must neither wait for a busy pool nor fail
// because of an inactive one. Only one pool is refreshed, or none.
func (h *Host) KnownOverlays(ctx context.Context, own string) ([]StorageVolume, error) {
	list, _ := h.known.LoadOrStore(own, &shared[[]StorageVolume]{})
	return list.(*shared[[]StorageVolume]).get(ctx, func(ctx context.Context) ([]StorageVolume, error) {
		return callOn(ctx, h, "look for overlays", func(c *conn) ([]StorageVolume, error) {
			const active = libvirt.ConnectListStoragePoolsActive
			return listOverlays(c, active, volumeTrust, func(p libvirt.StoragePool) (isNeeded bool, err error) {
				if isNeeded = p.Name == own; isNeeded {
					err = c.StoragePoolRefresh(p, 0)
				}
				if isBusy(err) || isCode(err, libvirt.ErrNoStoragePool) {
					err = nil
				}
				return isNeeded, err
			})
		})
	})
}

// listOverlays lists the overlays in pools. refresh refreshes a pool if that is needed; of other pools, those that are inactive or gone
// don't count.
func listOverlays(
	c *conn, which libvirt.ConnectListAllStoragePoolsFlags, t trust, refresh func(libvirt.StoragePool) (isNeeded bool, err error),
) ([]StorageVolume, error) {
	pools, _, err := c.ConnectListAllStoragePools(1, which)
	if err != nil {
		return nil, err
	}
	all, err := pipelined(pools, func(p libvirt.StoragePool) ([]StorageVolume, error) {
		if isPassing(p) {
			return nil, nil
		}
		isNeeded, err := refresh(p)
		var in []StorageVolume
		if err == nil {
			in, err = c.overlaysIn(p, t)
		}
		isAway := isCode(err, libvirt.ErrOperationInvalid) || isCode(err, libvirt.ErrNoStoragePool)
		if err != nil && (isNeeded || which == 0 && !isAway) {
			return nil, fmt.Errorf("storage pool %s can't be listed, and may have overlays: %w. Mount its filesystem if it has one, and "+
				"start it: virsh pool-start %[1]s", p.Name, err)
		}
		return in, nil
	})
	return slices.Concat(all...), err
}

// overlaysIn are those in a pool, as of libvirt's last refresh.
func (c *conn) overlaysIn(p libvirt.StoragePool, t trust) (found []StorageVolume, err error) {
	volumes, _, err := c.StoragePoolListAllVolumes(p, 1, 0)
	if err != nil {
		return nil, err
	}
	if len(volumes) > fewObjects {
		c.definitions.isSubscribed(c.Libvirt)
	}
	all, err := pipelined(volumes, func(v libvirt.StorageVol) (described, error) {
		s, err := c.describe(v, t)
		if isCode(err, libvirt.ErrNoStorageVol) {
			return described{}, nil // it was deleted meanwhile
		}
		if err != nil {
			return s, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		return s, nil
	})
	for _, s := range all {
		if s.isOver() {
			found = append(found, s.StorageVolume)
		}
	}
	return found, err
}

// describe is describe of a volume as this connection has last read it. What virtclaim's other processes change has a journal, whose events
// come before the domains are listed.
func (c *conn) describe(v libvirt.StorageVol, t trust) (described, error) {
	key, of := JournalName(v.Pool, v.Name), &c.definitions.volumes
	if t.rest > 0 {
		of = &c.definitions.refreshed
	}
	d, at, isKept := of.get(key, v, t)
	if isKept {
		return d, nil
	}
	d, err := describe(c.Libvirt, v)
	if err == nil && c.definitions.follows() {
		of.keep(key, v, d, at)
	}
	return d, err
}

// isBusy reports whether libvirt refuses to refresh a pool because a volume is being created in it. libvirt has no error code for that.
func isBusy(err error) bool {
	return isCode(err, libvirt.ErrInternalError) && strings.Contains(err.Error(), "asynchronous jobs running")
}
