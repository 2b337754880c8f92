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

// ErrFollowsLinks is the error of a host that can't be asked to open files without following symbolic links: its libvirt may
// not mount, or its kernel or mount command does not know the option nosymfollow.
var ErrFollowsLinks = errors.New("the host can't open files without following symbolic links")

// errUnseen is the error of a table of mounts that could not be read.
var errUnseen = errors.New("the host's table of mounts could not be read")

// noFollow is the mount option that has the kernel refuse to follow symbolic links, since Linux 5.10.
const noFollow = "nosymfollow"

// folderPrefix starts the names of the pools that InFolder makes.
const folderPrefix = "virtclaim-folder-"

// isPassing tells whether a pool is one of those that come and go, with files where tenants write: nobody else is to refresh it.
func isPassing(p libvirt.StoragePool) bool {
	return strings.HasPrefix(p.Name, folderPrefix) || strings.HasPrefix(p.Name, lookPrefix)
}

// folderTargets is where these pools are mounted: below a folder of libvirt's own, which every host has.
const folderTargets = "/run/libvirt/virtclaim/"

// privateMode is that of the folders in which files of tenants are mounted: the folders that they come from may keep other users of the host out.
const privateMode = "0700"

// folderPool is a pool over a folder, mounted in a private one. Its name follows from the folder's path, so that the next apply finds what an
// interrupted one has left.
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

// InFolder runs use with a pool of the files in a folder, through which nothing follows a symbolic link. libvirt mounts the
// folder once more for that: nothing else that it offers tells a link from what it leads to. A host that can't is
// ErrFollowsLinks, told by its table of mounts: a mount command that does not know the option may ignore it.
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
		err = fmt.Errorf("%w: %w", ErrFollowsLinks, err) // a host that does not tell, again and again
	}
	return err
}

// inFolder tells, too, whether another apply has closed the pool meanwhile.
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

// EndFolder ends what an interrupted InFolder has left of a folder. Otherwise only the next one does, and the filesystem stays mounted until then.
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
	if _, err := f.mounts(l); err != nil { // what can't be seen couldn't be unmounted
		return err
	}
	if err := f.close(l); err != nil { // what an interrupted apply has left
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

// close ends the pool and the mount.
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
	// The folder of the target is missing where the pool could not be built.
	_ = l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal)
	_ = f.removePrivate(l)
	return l.StoragePoolUndefine(p)
}

func (f folderPool) removePrivate(l *libvirt.Libvirt) error {
	return f.inPrivate(l, func(p libvirt.StoragePool) error { return l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal) })
}

// inPrivate calls do with a pool over the private folder, which it makes or removes.
func (f folderPool) inPrivate(l *libvirt.Libvirt, do func(libvirt.StoragePool) error) error {
	p, err := definePrivate(l, f.name+"-private", uuid.NewSHA1(f.id, []byte("private")).String(), f.private)
	if err != nil {
		return err
	}
	return errors.Join(do(p), l.StoragePoolUndefine(p))
}

// definePrivate defines a pool whose folder, once it is built, only the host's root can pass.
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

// end stops a pool that is active.
func end(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	active, err := l.StoragePoolIsActive(p)
	if err == nil && active != 0 {
		err = l.StoragePoolDestroy(p)
	}
	return err
}

// mounts are those at the pool's target, the top one first.
func (f folderPool) mounts(l *libvirt.Libvirt) ([]mount, error) {
	seen, err := mounts(l, f.name)
	return mountsAt(seen, f.target()), err
}
