package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/digitalocean/go-libvirt"
)

// AddSharedPool creates an active pool of files on host-a and host-b, whose folder is one and the same, as on a shared filesystem. Each
// pool has the name with the host's behind it, as in shared-host-a. remove removes the pools and the folder with its content.
func (l *Lab) AddSharedPool(ctx context.Context, name string) (folder string, remove func(context.Context) error, err error) {
	folder = filepath.Join(l.Dir, "shared-"+name)
	remove = func(ctx context.Context) (err error) {
		for _, h := range l.Hosts {
			err = errors.Join(err, h.removePool(ctx, name+"-"+h.Name))
		}
		return errors.Join(err, os.RemoveAll(folder))
	}
	err = makeFolder(folder)
	for _, h := range l.Hosts {
		if err == nil {
			err = h.addPool(ctx, name+"-"+h.Name, folder)
		}
	}
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		return "", nil, errors.Join(fmt.Errorf("make the shared pool %s: %w", name, err), remove(undo))
	}
	return folder, remove, nil
}

func (h *Host) addPool(ctx context.Context, name, target string) error {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	return definePool(l, name, target)
}

// removePool removes a pool that may exist.
func (h *Host) removePool(ctx context.Context, name string) error {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	pool, err := l.StoragePoolLookupByName(name)
	if err == nil {
		err = removePool(l, pool)
	}
	var problem libvirt.Error
	if errors.As(err, &problem) && problem.Code == uint32(libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// CoverFolder has the host see an empty folder in place of a folder, as when a shared filesystem is not mounted there.
func (h *Host) CoverFolder(ctx context.Context, folder string) (uncover func(context.Context) error, err error) {
	uncover = func(ctx context.Context) error { return h.sandbox.run(ctx, "umount "+quote(folder)) }
	return uncover, h.sandbox.run(ctx, "mount -t tmpfs -o mode=0755 tmpfs "+quote(folder))
}
