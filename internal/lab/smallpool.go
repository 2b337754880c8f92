package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/digitalocean/go-libvirt"
)

// AddSmallPool creates an active pool of files on its own filesystem, which has room for that many bytes, in whole pages of 4,096: writes
// beyond that fail with "no space left". Files can have holes, which take no room. It is a tmpfs that only the host has mounted, at the
// pool's name in Host.Pools: this machine sees an empty folder there, so use Host.ReadFile for the content of a file. remove removes the
// pool with its content, and fails while QEMU or libvirt have a file of it open.
func (h *Host) AddSmallPool(ctx context.Context, name string, bytes int64) (remove func(context.Context) error, err error) {
	remove = func(ctx context.Context) error {
		if err := h.removeSmallPool(ctx, name); err != nil {
			return fmt.Errorf("remove the pool %s of %s: %w", name, h.Name, err)
		}
		return nil
	}
	// Another pool's folder must not be removed with this one.
	if err := os.Mkdir(filepath.Join(h.Dir, "pools", name), 0o700); err != nil {
		return nil, err
	}
	if err := h.makeSmallPool(ctx, name, bytes); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("make the pool %s of %s: %w", name, h.Name, err), remove(undo))
	}
	return remove, nil
}

func (h *Host) makeSmallPool(ctx context.Context, name string, bytes int64) error {
	if err := makeFolder(filepath.Join(h.Dir, "pools", name)); err != nil {
		return err
	}
	target := filepath.Join(h.Pools, name)
	if err := h.sandbox.run(ctx, fmt.Sprintf("mount -t tmpfs -o mode=0755,size=%d tmpfs %s", bytes, quote(target))); err != nil {
		return err
	}
	return h.addPool(ctx, name, target)
}

// removeSmallPool removes the parts of it that exist.
func (h *Host) removeSmallPool(ctx context.Context, name string) error {
	if err := h.removePool(ctx, name); err != nil {
		return err
	}
	target := quote(filepath.Join(h.Pools, name))
	if err := h.sandbox.run(ctx, "! mountpoint -q "+target+" || umount "+target); err != nil {
		return err
	}
	return os.Remove(filepath.Join(h.Dir, "pools", name))
}

// removePool leaves the files alone.
func removePool(l *libvirt.Libvirt, pool libvirt.StoragePool) error {
	active, err := l.StoragePoolIsActive(pool)
	if err == nil && active != 0 {
		err = l.StoragePoolDestroy(pool)
	}
	if err != nil {
		return err
	}
	return l.StoragePoolUndefine(pool)
}

// ReadFile returns the content of a file by its path on the host, also of a file that this machine does not see.
func (h *Host) ReadFile(ctx context.Context, path string) ([]byte, error) {
	copied, err := os.CreateTemp(h.Dir, "read-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = errors.Join(copied.Close(), os.Remove(copied.Name())) }()
	// The command writes into an existing file, whose owner stays the caller.
	if err := h.sandbox.run(ctx, "cat "+quote(path)+" >"+quote(copied.Name())); err != nil {
		return nil, fmt.Errorf("read a file of %s: %w", h.Name, err)
	}
	return os.ReadFile(copied.Name())
}
