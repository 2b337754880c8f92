package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// ErrFollowsLinks is the error of a host that can't open files without following symbolic links: its libvirt may not mount, or its kernel or
// mount command does not support the option nosymfollow.
var ErrFollowsLinks = errors.New("the host can't open files without following symbolic links")

// errUnseen is the error of a mount table that could not be read.
var errUnseen = errors.New("the host's table of mounts could not be read")

// noFollow is the mount option that makes the kernel refuse to follow symbolic links, since Linux 5.10.
const noFollow = "nosymfollow"

// folderPrefix is the prefix of the names of InFolder's pools.
const folderPrefix = "virtclaim-folder-"

// isPassing reports whether a pool is a temporary one over files of tenants, which must not be refreshed by other operations.
func isPassing(p libvirt.StoragePool) bool {
	return strings.HasPrefix(p.Name, folderPrefix) || strings.HasPrefix(p.Name, lookPrefix)
}

// folderTargets is the folder below which these pools are mounted, in a folder of libvirt's that every host has.
const folderTargets = "/run/libvirt/virtclaim/"

// privateMode is the mode of folders in which files of tenants are mounted: their original folders may be inaccessible for other users.
const privateMode = "0700"

// folderPool is a pool over a folder, mounted in a private one. Its name is derived from the folder's path, so that the next apply finds the
// pool of an interrupted one.
type folderPool struct {
	host                *Host
	name, private, path string
	id                  uuid.UUID
}

func (f folderPool) target() string { return f.private + "/folder" }

func (h *Host) folderPool(path string) folderPool {
	sum := sha256.Sum256([]byte(path))
	name := folderPrefix + hex.EncodeToString(sum[:8])
	return folderPool{h, name, folderTargets + name, path, uuid.UUID(sum[16:])}
}

// InFolder runs use with a pool of the files in a folder that does not follow symbolic links. libvirt mounts the folder again for that, because
// it has no other call that distinguishes a link from its target. ErrFollowsLinks is the error of a host that can't. The mount table decides,
// because a mount command may ignore options that it does not support.
func (h *Host) InFolder(ctx context.Context, path string, use func(ctx context.Context, pool string) error) error {
	f := h.folderPool(path)
	release, err := h.folders.lock(ctx, f.name)
	if err != nil {
		return h.failed("wait for folder "+path, err)
	}
	defer release()
	for range tries {
		var gone bool
		if gone, err = h.inFolder(ctx, f, use); !gone && !errors.Is(err, errUnseen) {
			return err
		}
	}
	if errors.Is(err, errUnseen) {
		err = fmt.Errorf("%w: %w", ErrFollowsLinks, err) // the mount table could not be read in any attempt
	}
	return err
}

// inFolder also reports whether another apply has closed the pool meanwhile.
func (h *Host) inFolder(ctx context.Context, f folderPool, use func(ctx context.Context, pool string) error) (gone bool, err error) {
	if err := do(ctx, h, "mount folder "+f.path, f.open); err != nil {
		return false, err
	}
	if err = use(ctx, f.name); err != nil {
		pool, failed := h.Pool(ctx, f.name)
		gone = errors.Is(failed, ErrNoPool) || failed == nil && !pool.Active
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTime)
	defer cancel()
	return gone, errors.Join(err, do(ctx, h, "unmount folder "+f.path, f.close))
}

// EndFolder removes the pool and mount of an interrupted InFolder. Otherwise the filesystem would stay mounted until the next call of InFolder.
func (h *Host) EndFolder(ctx context.Context, path string) error {
	f := h.folderPool(path)
	release, err := h.folders.lock(ctx, f.name)
	if err != nil {
		return h.failed("wait for folder "+path, err)
	}
	defer release()
	return do(ctx, h, "unmount folder "+path, f.close)
}

func (f folderPool) open(l *libvirt.Libvirt) error {
	if f.host.hidesMounts.Load() {
		return ErrFollowsLinks
	}
	if _, err := f.mounts(l); err != nil { // without the mount table it could not be unmounted
		return err
	}
	if err := f.close(l); err != nil { // the pool and mount of an interrupted apply
		return err
	}
	if err := f.inPrivate(l, func(p libvirt.StoragePool) error { return l.StoragePoolBuild(p, 0) }); err != nil {
		return err
	}
	xml, err := bindPool(f.name, f.id.String(), f.path, f.target(), "bind", noFollow).Marshal()
	if err != nil {
		return err
	}
	p, err := l.StoragePoolDefineXML(xml, 0)
	if err != nil {
		return errors.Join(err, f.removePrivate(l))
	}
	err = l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
	mounts, unseen := f.mounts(l)
	switch {
	case unseen == nil && len(mounts) > 0 && err == nil && mounts[0].has(noFollow):
		return nil
	case unseen != nil:
		err = errors.Join(err, unseen)
	case len(mounts) == 0 || err == nil:
		// A pool that fails because of the files in the folder has mounted it by then, so a tenant can't simulate a host that can't mount.
		// hidesMounts is not set here: another apply may have unmounted the folder. Only a look decides that.
		err = errors.Join(ErrFollowsLinks, err)
	}
	return errors.Join(err, f.close(l))
}

// close stops the pool and unmounts the folder.
func (f folderPool) close(l *libvirt.Libvirt) error {
	p, err := l.StoragePoolLookupByName(f.name)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := end(l, p); err != nil {
		return err
	}
	if err := f.host.unmount(l, f.name, f.target()); err != nil {
		return err
	}
	// The folder of the target is missing if the pool could not be built.
	_ = l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal)
	_ = f.removePrivate(l)
	return l.StoragePoolUndefine(p)
}

func (f folderPool) removePrivate(l *libvirt.Libvirt) error {
	return f.inPrivate(l, func(p libvirt.StoragePool) error { return l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal) })
}

// inPrivate calls do with a pool over the private folder, which do creates or removes.
func (f folderPool) inPrivate(l *libvirt.Libvirt, do func(libvirt.StoragePool) error) error {
	p, err := definePrivate(l, f.name+"-private", uuid.NewSHA1(f.id, []byte("private")).String(), f.private)
	if err != nil {
		return err
	}
	return errors.Join(do(p), l.StoragePoolUndefine(p))
}

// definePrivate defines a pool whose folder, once built, is only accessible for the host's root.
func definePrivate(l *libvirt.Libvirt, name, uuid, folder string) (libvirt.StoragePool, error) {
	pool := libvirtxml.StoragePool{Type: "dir", Name: name, UUID: uuid, Target: &libvirtxml.StoragePoolTarget{
		Path: folder, Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: privateMode},
	}}
	xml, err := pool.Marshal()
	if err != nil {
		return libvirt.StoragePool{}, err
	}
	return l.StoragePoolDefineXML(xml, 0)
}

// end stops an active pool.
func end(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	active, err := l.StoragePoolIsActive(p)
	if err == nil && active != 0 {
		err = l.StoragePoolDestroy(p)
	}
	return err
}

// mounts are the mounts at the pool's target, top first.
func (f folderPool) mounts(l *libvirt.Libvirt) ([]mount, error) {
	seen, err := mounts(l, f.name)
	return mountsAt(seen, f.target()), err
}
