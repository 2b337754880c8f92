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

// onPool is call for a storage pool. One that is missing is an error of its own and never ErrNotFound: its volumes may
// well exist.
func onPool[T any](ctx context.Context, h *Host, op, pool string, f func(*libvirt.Libvirt, libvirt.StoragePool) (T, error)) (T, error) {
	return call(ctx, h, op, func(l *libvirt.Libvirt) (T, error) {
		p, err := l.StoragePoolLookupByName(pool)
		if isCode(err, libvirt.ErrNoStoragePool) {
			err = ErrNoPool
		}
		if err != nil {
			var none T
			return none, fmt.Errorf("storage pool %s: %w", pool, err)
		}
		if ctx.Err() != nil {
			return *new(T), context.Cause(ctx) // the caller has gone on: nothing may be changed behind its back
		}
		return f(l, p)
	})
}

// busyPause is how long a pool that is busy is left alone.
const busyPause = 200 * time.Millisecond

// refresh has libvirt look at the files of a pool, which it does by itself only when the pool starts. While a volume is
// being made in the pool libvirt refuses that, and has no event for its end.
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
	// Type is libvirt's, such as dir; Path is its target on the host, empty for one that has none.
	Type, Path string
	// Active tells whether its volumes can be used. What follows is in bytes, and 0 of a pool that is not.
	Active                          bool
	Capacity, Allocation, Available int64
}

// Pool tells of a pool what libvirt has seen of it last. It is not refreshed: a refresh that fails stops the pool.
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

// PoolCapacity is how many bytes the filesystem or volume group of a pool has, as libvirt has seen it last.
func (h *Host) PoolCapacity(ctx context.Context, pool string) (int64, error) {
	return onPool(ctx, h, "look at storage pool "+pool, pool, func(l *libvirt.Libvirt, p libvirt.StoragePool) (int64, error) {
		_, capacity, _, _, err := l.StoragePoolGetInfo(p)
		return int64(capacity), err
	})
}

// PoolFree is how many bytes a pool has left.
func (h *Host) PoolFree(ctx context.Context, pool string) (int64, error) {
	return onPool(ctx, h, "look at storage pool "+pool, pool, func(l *libvirt.Libvirt, p libvirt.StoragePool) (int64, error) {
		if err := refresh(ctx, l, p); err != nil {
			return 0, err
		}
		_, _, _, free, err := l.StoragePoolGetInfo(p)
		return int64(free), err
	})
}

// PoolOfTarget is the name of the pool whose target is that path on the host, or ErrNotFound.
func (h *Host) PoolOfTarget(ctx context.Context, path string) (string, error) {
	return call(ctx, h, "look for a storage pool at "+path, func(l *libvirt.Libvirt) (string, error) {
		pools, _, err := l.ConnectListAllStoragePools(1, 0)
		if err != nil {
			return "", err
		}
		for _, p := range pools {
			text, err := l.StoragePoolGetXMLDesc(p, 0)
			if isCode(err, libvirt.ErrNoStoragePool) {
				continue // it has just gone
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

// MakeDirPool defines, builds and starts a pool of files in a folder, also at each start of the host. Another pool of that
// name is an error.
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

// StartPool starts a pool that is not active.
func (h *Host) StartPool(ctx context.Context, name string) error {
	_, err := onPool(ctx, h, "start storage pool "+name, name, func(l *libvirt.Libvirt, p libvirt.StoragePool) (struct{}, error) {
		active, err := l.StoragePoolIsActive(p)
		if err != nil || active != 0 {
			return struct{}{}, err
		}
		err = l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
		if active, e := l.StoragePoolIsActive(p); e == nil && active != 0 {
			err = nil // somebody else was faster
		}
		return struct{}{}, err
	})
	return err
}
