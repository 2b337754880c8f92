package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// alignment is what the size of a disk.img is a multiple of, as KubeVirt's are, so that every sector size fits.
const alignment = 1 << 20

// Folders is what MakeDiskImage needs of a host.
type Folders interface {
	PoolOfTarget(ctx context.Context, path string) (string, error)
	OpenFolder(ctx context.Context, name, path string) error
	CloseFolder(ctx context.Context, name string) error
	Volume(ctx context.Context, pool, name string) (host.StorageVolume, error)
	CreateVolume(ctx context.Context, pool string, xml libvirtxml.StorageVolume, preallocate bool) error
}

// MakeDiskImage makes the raw, sparse file of that path, at most capacity bytes large. A file that is there already is
// left alone. libvirt makes files in storage pools only, so for that moment the folder is one.
func MakeDiskImage(ctx context.Context, h Folders, path string, capacity int64) error {
	if capacity < alignment {
		return fmt.Errorf("%s can't be made: the claim has less than 1 MiB", path)
	}
	folder, name := filepath.Split(path)
	sum := sha256.Sum256([]byte(path))
	own := "virtclaim-folder-" + hex.EncodeToString(sum[:8])
	pool, err := h.PoolOfTarget(ctx, folder)
	if errors.Is(err, host.ErrNotFound) {
		pool, err = own, h.OpenFolder(ctx, own, folder)
	}
	if err != nil {
		return err
	}
	err = makeRaw(ctx, h, pool, name, capacity-capacity%alignment)
	if pool == own { // also when an interrupted apply left it
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		err = errors.Join(err, h.CloseFolder(ctx, own))
	}
	return err
}

// makeRaw makes a raw, sparse file, if there is none. It looks first, because what was made beside libvirt is not in the
// pool's list, and then libvirt's error does not say that it exists.
func makeRaw(ctx context.Context, h Folders, pool, name string, bytes int64) error {
	_, err := h.Volume(ctx, pool, name)
	if !errors.Is(err, host.ErrNotFound) {
		return err
	}
	err = h.CreateVolume(ctx, pool, libvirtxml.StorageVolume{
		Name:       name,
		Capacity:   &libvirtxml.StorageVolumeSize{Value: uint64(bytes), Unit: "bytes"},
		Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
	if errors.Is(err, host.ErrExists) {
		return nil // somebody was faster
	}
	return err
}
