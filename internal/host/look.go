package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// errDisturbed is the error of a look that another process has ended.
var errDisturbed = errors.New("another apply looks at the same path")

// lookTime is how long another process may look at the same path; an older look was left by an interrupted one.
const lookTime = 5 * time.Second

// look is a private storage pool with an empty volume, over which the path is bind-mounted. The pool's folder is bound onto itself: that shows
// whether the host can mount at all, and a restarted libvirtd takes such a pool for inactive, because the mount table has another source, and
// does not read the file's header. The pool's name is derived from the path, so that the next apply finds the pool of an interrupted one.
type look struct {
	host       *Host
	name, path string
}

// lookPrefix is the prefix of the names of these pools.
const lookPrefix = "virtclaim-look-"

// lookBound is the name of the volume.
const lookBound = "bound"

func (h *Host) look(path string) look {
	sum := sha256.Sum256([]byte(path))
	return look{h, lookPrefix + hex.EncodeToString(sum[:8]), path}
}

func (k look) folder() string { return folderTargets + k.name }

// checkBound returns errDisturbed if another look has ended the mount.
func (k look) checkBound(l *libvirt.Libvirt, bound location) error {
	seen, err := mounts(l, k.name)
	if at := mountsAt(seen, k.folder()+"/"+lookBound); err == nil && (len(at) == 0 || at[0].location != bound) {
		err = errDisturbed
	}
	return err
}

// lookAt calls f with the location that the path leads to.
func lookAt[T any](ctx context.Context, h *Host, path string, f func(*libvirt.Libvirt, libvirt.StoragePool, look, location) (T, error)) (found T, err error) {
	k := h.look(path)
	release, err := h.folders.lock(ctx, k.name)
	if err != nil {
		return found, h.failed("wait for a look at "+path, err)
	}
	defer release()
	for range tries {
		found, err = call(ctx, h, "look at "+path, func(l *libvirt.Libvirt) (found T, err error) {
			p, bound, err := k.run(ctx, l)
			if err != nil {
				return found, err
			}
			defer func() { err = k.closed(l, p, err) }()
			return f(l, p, k, bound)
		})
		if !errors.Is(err, errDisturbed) {
			break
		}
	}
	return found, err
}

// run bind-mounts the path over a file of a new pool, which the caller closes unless there is an error.
func (k look) run(ctx context.Context, l *libvirt.Libvirt) (p libvirt.StoragePool, bound location, err error) {
	if k.host.hidesMounts.Load() {
		return p, bound, ErrCannotTell
	}
	if _, err := mounts(l, k.name); err != nil { // without the mount table it could not be unmounted
		return p, bound, err
	}
	if p, err = k.open(ctx, l); err != nil {
		return p, bound, err
	}
	if bound, err = k.bound(l, p); err != nil {
		err = k.closed(l, p, err)
	}
	return p, bound, err
}

// closed closes the pool after err. The error of closing is returned first, because callers continue after ErrNotFound.
func (k look) closed(l *libvirt.Libvirt, p libvirt.StoragePool, err error) error {
	return cmp.Or(k.close(l, p), err)
}

// bound is the real location of the path, after it was bound over the volume.
func (k look) bound(l *libvirt.Libvirt, p libvirt.StoragePool) (location, error) {
	bound, failed, err := k.bind(l)
	switch {
	case err != nil || bound != (location{}):
		return bound, err
	case !k.stands(l, p):
		return bound, errDisturbed
	default:
		return bound, fmt.Errorf("%w: %w: %w", ErrNotFound, ErrNotRegular, failed)
	}
}

// open creates the pool, which has one user at a time: libvirt refuses a second pool of its name.
func (k look) open(ctx context.Context, l *libvirt.Libvirt) (p libvirt.StoragePool, err error) {
	var seen libvirt.UUID
	for deadline := time.Now(); ; {
		if p, err = k.define(l); err == nil {
			break
		}
		other, failed := l.StoragePoolLookupByName(k.name)
		if failed != nil && !isCode(failed, libvirt.ErrNoStoragePool) {
			return p, errors.Join(err, failed)
		}
		if failed == nil && other.UUID != seen { // each look has its own lookTime
			seen, deadline = other.UUID, time.Now().Add(lookTime)
		}
		if failed == nil && time.Now().After(deadline) {
			if err := k.close(l, other); err != nil {
				return p, err
			}
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return p, context.Cause(ctx)
		}
	}
	if err = k.start(l, p); err == nil {
		err = k.create(l, p)
	}
	if err != nil {
		err = errors.Join(err, k.close(l, p))
	}
	return p, err
}

// define defines the pool, whose folder, once built, is only accessible for the host's root.
func (k look) define(l *libvirt.Libvirt) (p libvirt.StoragePool, err error) {
	pool := bindPool(k.name, "", k.folder(), k.folder(), "bind")
	pool.Target.Permissions = &libvirtxml.StoragePoolTargetPermissions{Mode: privateMode}
	xml, err := pool.Marshal()
	if err != nil {
		return p, err
	}
	return l.StoragePoolDefineXML(xml, 0)
}

// start mounts the pool. Only this mount decides whether the host hides its mounts, because tenants control the paths of the others.
func (k look) start(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	err := l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
	seen, unseen := mounts(l, k.name)
	switch {
	case unseen != nil:
		return errors.Join(err, unseen)
	case len(mountsAt(seen, k.folder())) > 0:
		return err
	case err == nil:
		if active, err := l.StoragePoolIsActive(p); err != nil || active == 0 {
			return errDisturbed
		}
		k.host.hidesMounts.Store(true)
		return ErrCannotTell
	case isCode(err, libvirt.ErrInternalError): // the mount command failed
		return fmt.Errorf("%w: %w", ErrCannotTell, err)
	default:
		return err
	}
}

// create creates the volume, unless an interrupted look has left it.
func (k look) create(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	empty := libvirtxml.StorageVolume{
		Name: lookBound, Capacity: &libvirtxml.StorageVolumeSize{Value: 0},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}
	_, err := l.StorageVolLookupByName(p, lookBound)
	if !isCode(err, libvirt.ErrNoStorageVol) {
		return err
	}
	xml, err := empty.Marshal()
	if err == nil {
		_, err = l.StorageVolCreateXML(p, xml, 0)
	}
	return err
}

// bind mounts the path over the volume and returns its real location, which is empty if it could not be mounted. The pool with which libvirt
// mounts never starts, because its target is not a folder: libvirt lists no files.
func (k look) bind(l *libvirt.Libvirt) (bound location, failed, err error) {
	target := k.folder() + "/" + lookBound
	xml, err := bindPool(k.name+"-bind", "", k.path, target, "bind").Marshal()
	if err != nil {
		return bound, nil, err
	}
	p, failed := l.StoragePoolCreateXML(xml, 0)
	if failed == nil {
		return bound, nil, errors.Join(errors.New("libvirt takes a file for a folder"), end(l, p))
	}
	seen, err := mounts(l, k.name)
	if at := mountsAt(seen, target); len(at) > 0 {
		return at[0].location, failed, err
	}
	return bound, failed, err
}

// stands reports whether the pool has its volume and libvirt can open the volume's file.
func (k look) stands(l *libvirt.Libvirt, p libvirt.StoragePool) bool {
	v, err := l.StorageVolLookupByName(p, lookBound)
	if err == nil {
		_, _, _, err = l.StorageVolGetInfo(v)
	}
	return err == nil
}

// close unmounts the path and removes the pool.
func (k look) close(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	if err := k.host.unmount(l, k.name, k.folder()+"/"+lookBound); err != nil {
		return err
	}
	if v, err := l.StorageVolLookupByName(p, lookBound); err == nil {
		if err := l.StorageVolDelete(v, 0); err != nil {
			return err
		}
	}
	if err := end(l, p); err != nil {
		return err
	}
	if err := k.host.unmount(l, k.name, k.folder()); err != nil {
		return err
	}
	_ = l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal) // the folder is missing if the pool could not be built
	err := l.StoragePoolUndefine(p)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}
