package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// onPool is call for a storage pool. A missing pool is ErrNoPool, never ErrNotFound, because the files of its volumes may exist.
func onPool[T any](ctx context.Context, h *Host, op, pool string, f func(*libvirt.Libvirt, libvirt.StoragePool) (T, error)) (T, error) {
	return call(ctx, h, op, func(l *libvirt.Libvirt) (T, error) { return withPool(ctx, h, l, pool, f) })
}

// withPool calls f with a pool, whose UUID is kept; again if the pool was defined again since, and has another one.
func withPool[T any](ctx context.Context, h *Host, l *libvirt.Libvirt, pool string,
	f func(*libvirt.Libvirt, libvirt.StoragePool) (T, error),
) (value T, err error) {
	run := func(p libvirt.StoragePool) (T, error) {
		value, err := f(l, p)
		return value, explainInactive(l, err, StoragePool, pool)
	}
	if kept, is := h.pools.Load(pool); is {
		value, err = run(kept.(libvirt.StoragePool))
		if !isCode(err, libvirt.ErrNoStoragePool) {
			return value, err
		}
		h.pools.Delete(pool)
	}
	p, err := l.StoragePoolLookupByName(pool)
	if isCode(err, libvirt.ErrNoStoragePool) {
		err = ErrNoPool
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the caller has returned: nothing may be changed after that
	}
	if err != nil {
		return value, err
	}
	h.pools.Store(pool, p)
	return run(p)
}

// rescan has libvirt read the files of a pool again.
func rescan(ctx context.Context, h *Host, l *libvirt.Libvirt, pool string) error {
	_, err := withPool(ctx, h, l, pool, func(l *libvirt.Libvirt, p libvirt.StoragePool) (struct{}, error) {
		return struct{}{}, refresh(ctx, l, p)
	})
	return err
}

// busyPause is the pause between attempts to refresh a busy pool.
const busyPause = 200 * time.Millisecond

// refresh has libvirt read the files of a pool, which it otherwise does only when the pool starts. libvirt refuses that while a volume is
// being created in the pool, and has no event for its end.
func refresh(ctx context.Context, l *libvirt.Libvirt, p libvirt.StoragePool) error {
	for {
		err := l.StoragePoolRefresh(p, 0)
		if !isBusy(err) {
			return err
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// Pool is a storage pool.
type Pool struct {
	// Type is libvirt's type, such as dir; Path is the target on the host, empty for a pool without one.
	Type, Path string
	// Active tells whether its volumes can be used. The following fields are in bytes, and 0 for an inactive pool.
	Active                          bool
	Capacity, Allocation, Available int64
}

// Pool describes a pool as of libvirt's last refresh. It does not refresh the pool, because a failed refresh stops it.
func (h *Host) Pool(ctx context.Context, name string) (Pool, error) {
	return onPool(ctx, h, "look at storage pool "+name, name, func(l *libvirt.Libvirt, p libvirt.StoragePool) (seen Pool, err error) {
		active, err := l.StoragePoolIsActive(p)
		if err != nil {
			return seen, err
		}
		if active != 0 {
			_, capacity, allocation, available, err := l.StoragePoolGetInfo(p)
			if err != nil {
				return seen, err
			}
			seen = Pool{Active: true, Capacity: int64(capacity), Allocation: int64(allocation), Available: int64(available)}
		}
		text, err := l.StoragePoolGetXMLDesc(p, 0)
		if err != nil {
			return seen, err
		}
		var xml libvirtxml.StoragePool
		err = xml.Unmarshal(text)
		seen.Type = xml.Type
		if xml.Target != nil {
			seen.Path = xml.Target.Path
		}
		return seen, err
	})
}

// PoolCapacity is the size in bytes of the filesystem or volume group of a pool, as of libvirt's last refresh.
func (h *Host) PoolCapacity(ctx context.Context, pool string) (int64, error) {
	return onPool(ctx, h, "look at storage pool "+pool, pool, func(l *libvirt.Libvirt, p libvirt.StoragePool) (int64, error) {
		_, capacity, _, _, err := l.StoragePoolGetInfo(p)
		return int64(capacity), err
	})
}

// VolumeNames are the names of the volumes of a pool, as of libvirt's last refresh.
func (h *Host) VolumeNames(ctx context.Context, pool string) ([]string, error) {
	return onPool(ctx, h, "list storage pool "+pool, pool, func(l *libvirt.Libvirt, p libvirt.StoragePool) (names []string, err error) {
		volumes, _, err := l.StoragePoolListAllVolumes(p, 1, 0)
		for _, v := range volumes {
			names = append(names, v.Name)
		}
		return names, err
	})
}

// PoolFree is the free space of a pool in bytes.
func (h *Host) PoolFree(ctx context.Context, pool string) (int64, error) {
	return onPool(ctx, h, "look at storage pool "+pool, pool, func(l *libvirt.Libvirt, p libvirt.StoragePool) (int64, error) {
		if err := refresh(ctx, l, p); err != nil {
			return 0, err
		}
		_, _, _, free, err := l.StoragePoolGetInfo(p)
		return int64(free), err
	})
}

// PoolOfTarget returns the name of the pool whose target is that path on the host, or ErrNotFound.
func (h *Host) PoolOfTarget(ctx context.Context, path string) (string, error) {
	return call(ctx, h, "look for a storage pool at "+path, func(l *libvirt.Libvirt) (string, error) {
		pools, _, err := l.ConnectListAllStoragePools(1, 0)
		if err != nil {
			return "", err
		}
		for _, p := range pools {
			if isPassing(p) {
				continue
			}
			text, err := l.StoragePoolGetXMLDesc(p, 0)
			if isCode(err, libvirt.ErrNoStoragePool) {
				continue // it was removed meanwhile
			}
			if err != nil {
				return "", err
			}
			var xml libvirtxml.StoragePool
			if err := xml.Unmarshal(text); err != nil {
				return "", err
			}
			if xml.Target != nil && filepath.Clean(xml.Target.Path) == filepath.Clean(path) {
				return p.Name, nil
			}
		}
		return "", ErrNotFound
	})
}

// MakeDirPool defines, builds and starts a pool of files in a folder, with autostart. An existing pool of that name is an error.
func (h *Host) MakeDirPool(ctx context.Context, name, path string) error {
	pool := libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{Path: path}}
	xml, err := pool.Marshal()
	if err != nil {
		return err
	}
	return do(ctx, h, fmt.Sprintf("make storage pool %s at %s", name, path), func(l *libvirt.Libvirt) error {
		p, err := l.StoragePoolDefineXML(xml, 0)
		if err != nil {
			return err
		}
		if err := l.StoragePoolSetAutostart(p, 1); err != nil {
			return err
		}
		return l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
	})
}

// StartPool starts an inactive pool.
func (h *Host) StartPool(ctx context.Context, name string) error {
	_, err := onPool(ctx, h, "start storage pool "+name, name, func(l *libvirt.Libvirt, p libvirt.StoragePool) (struct{}, error) {
		active, err := l.StoragePoolIsActive(p)
		if err != nil || active != 0 {
			return struct{}{}, err
		}
		err = l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
		if active, e := l.StoragePoolIsActive(p); e == nil && active != 0 {
			err = nil // another process has started it meanwhile
		}
		return struct{}{}, err
	})
	return err
}
