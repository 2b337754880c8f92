package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// KnownOverlays is Overlays as of libvirt's last refresh, for the start of a machine, which must neither wait for a busy pool nor fail because of
// an inactive one. Only the pool of the file with the path "of" is refreshed.
func (h *Host) KnownOverlays(ctx context.Context, of string) ([]StorageVolume, error) {
	return call(ctx, h, "look for overlays of "+of, func(l *libvirt.Libvirt) (found []StorageVolume, err error) {
		own, err := rescanPoolOf(l, of)
		if err != nil {
			return nil, err
		}
		pools, _, err := l.ConnectListAllStoragePools(1, libvirt.ConnectListStoragePoolsActive)
		if err != nil {
			return nil, err
		}
		for _, p := range pools {
			if isPassing(p) {
				continue
			}
			in, err := knownVolumes(l, p, StorageVolume.isOver)
			if err != nil && p.Name != own {
				continue // it was removed or stopped meanwhile, or can't be read
			}
			if err != nil {
				return nil, fmt.Errorf("storage pool %s: %w", p.Name, err)
			}
			found = append(found, in...)
		}
		return found, nil
	})
}

// rescanPoolOf refreshes the pool of a file, unless the pool is busy, and returns the pool's name; empty for a file outside of all pools.
func rescanPoolOf(l *libvirt.Libvirt, path string) (pool string, err error) {
	v, err := l.StorageVolLookupByPath(path)
	if isCode(err, libvirt.ErrNoStorageVol) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	p, err := l.StoragePoolLookupByName(v.Pool)
	if err == nil {
		err = l.StoragePoolRefresh(p, 0)
	}
	if isCode(err, libvirt.ErrNoStoragePool) || isBusy(err) {
		return v.Pool, nil
	}
	return v.Pool, err
}

// isBusy reports whether libvirt refuses to refresh a pool because a volume is being created in it. libvirt has no error code for that.
func isBusy(err error) bool {
	return isCode(err, libvirt.ErrInternalError) && strings.Contains(err.Error(), "asynchronous jobs running")
}
