package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// ErrFollowsLinks is the error of a folder in which the host follows symbolic links.
var ErrFollowsLinks = errors.New("the host follows symbolic links there")

// errUnseen is the error of a mount table that could not be read.
var errUnseen = errors.New("the host's table of mounts could not be read")

// noFollow is the mount option that makes the kernel refuse to follow symbolic links, since Linux 5.10.
const noFollow = "nosymfollow"

// folderPrefix is the prefix of the names of CreateIn's pools.
const folderPrefix = "virtclaim-folder-"

// isPassing reports whether a pool is a temporary one, often over files of tenants, which must not be used or refreshed by other
// operations.
func isPassing(p libvirt.StoragePool) bool {
	return slices.ContainsFunc([]string{folderPrefix, inspectPrefix, lookPrefix, bindPrefix, statePrefix}, func(prefix string) bool {
		return strings.HasPrefix(p.Name, prefix)
	})
}

// folderPool is the name of a pool over a folder. It is derived from the folder's path, so that the next apply finds the pool of a killed
// one.
func folderPool(path string) string {
	sum := sha256.Sum256([]byte(path))
	return folderPrefix + hex.EncodeToString(sum[:8])
}

// CreateIn creates a volume in a folder, with a pool that exists only for that, on a mount with the option nosymfollow. libvirt lists the
// files in the folder, and would follow links elsewhere. ErrExists is the error of an existing file of the name; a link is an error, too.
func (h *Host) CreateIn(ctx context.Context, folder string, volume libvirtxml.StorageVolume) error {
	text, err := volume.Marshal()
	if err != nil {
		return err
	}
	name := folderPool(folder)
	release, err := h.folders.lock(ctx, name)
	if err != nil {
		return h.failed("wait for folder "+folder, err)
	}
	defer release()
	return do(ctx, h, fmt.Sprintf("make %s in folder %s", volume.Name, folder),
		func(l *libvirt.Libvirt) error { return createIn(l, name, folder, text) })
}

func createIn(l *libvirt.Libvirt, name, folder, volume string) error {
	seen, err := mounts(l, name)
	if err != nil {
		return err
	}
	if on, _ := mountOf(seen, folder); !on.has(noFollow) {
		return fmt.Errorf("%w: folder %s is on the mount %s, which does not have the option nosymfollow. Mount the volume with it "+
			"(mountOptions of the PersistentVolume, or /etc/fstab), or have a pod put a disk.img there", ErrFollowsLinks, folder, on.target)
	}
	if err := endFolder(l, name); err != nil {
		return err
	}
	// libvirt compares the texts of targets, and refuses a second pool with the same one.
	pool := libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{Path: folder + "/."}}
	xml, err := pool.Marshal()
	if err != nil {
		return err
	}
	p, err := l.StoragePoolCreateXML(xml, 0)
	if err != nil {
		return err
	}
	_, err = l.StorageVolCreateXML(p, volume, 0)
	if isCode(err, libvirt.ErrOperationInvalid) {
		err = fmt.Errorf("%w: %w", ErrExists, err) // libvirt's code for an existing file
	}
	return errors.Join(err, endPassing(l, p))
}

// EndFolder ends the pool of a killed CreateIn.
func (h *Host) EndFolder(ctx context.Context, folder string) error {
	return do(ctx, h, "end the storage pool over folder "+folder,
		func(l *libvirt.Libvirt) error { return endFolder(l, folderPool(folder)) })
}

func endFolder(l *libvirt.Libvirt, name string) error {
	p, err := l.StoragePoolLookupByName(name)
	if err == nil {
		return endPassing(l, p)
	}
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}
