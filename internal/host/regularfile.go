package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// ErrNotRegular is the error of a path where no regular file is, or that leads to one by a symbolic link.
var ErrNotRegular = errors.New("there is no regular file: it is missing, or it is a symbolic link, a FIFO, a device or a folder")

// ErrCannotTell is the error of a host that does not show what is at a path: its libvirt may not mount.
var ErrCannotTell = errors.New("the host can't tell regular files from symbolic links")

// errDisturbed is the error of a look that another apply has ended.
var errDisturbed = errors.New("another apply looks at the same path")

// lookTime is what another apply gets to look at the same path; after that an interrupted one has left its look.
const lookTime = 5 * time.Second

// look is a private pool of libvirt's with an empty volume, over which the path that is looked at is bound. The pool's folder is bound onto itself:
// that shows whether the host binds anything at all, and a libvirtd that starts again takes such a pool for inactive, since the table of mounts
// has another source, and so does not read the file's header. The pool's name follows from the path, so that the next apply finds what an
// interrupted one has left.
type look struct {
	host       *Host
	name, path string
}

// lookPrefix starts the names of these pools.
const lookPrefix = "virtclaim-look-"

// lookBound is the name of the volume.
const lookBound = "bound"

func (h *Host) look(path string) look {
	sum := sha256.Sum256([]byte(path))
	return look{h, lookPrefix + hex.EncodeToString(sum[:8]), path}
}

func (k look) folder() string { return folderTargets + k.name }

// RegularFile is nil for a path that is a regular file with something in it, and ErrNotRegular for all else: also where its last
// part or a folder above it is a symbolic link. One that is missing is ErrNotFound, too. libvirt offers nothing that tells a link
// from what it leads to, so it binds the path over a file of its own: the table of mounts has where that really is, and libvirt
// tells its type without opening what is no file. Neither is its folder listed nor its content looked at, which would have libvirt
// open what a qcow2 header names. A host that can't is ErrCannotTell, as is one whose root may not read the file. head is how many bytes
// to read of what the file begins with, at most: those of the very file that was looked at, and for 0 none.
func (h *Host) RegularFile(ctx context.Context, path string, head int) (content []byte, err error) {
	return lookAt(ctx, h, path, func(l *libvirt.Libvirt, p libvirt.StoragePool, k look, bound location) ([]byte, error) {
		return k.read(l, p, bound, head)
	})
}

// File is what a path leads to.
type File struct {
	// At is the same for all paths that lead to one file: by symbolic links, by bind mounts or by /proc. A second hard link has another one.
	At string
	// Head is what the file begins with; none of a FIFO, a socket, a device, and what the host's root may not read.
	Head []byte
	// Length is in bytes, and Modified is when the file was written to last, as libvirt says it; empty where libvirt can't open the file.
	Length   int64
	Modified string
}

// File tells what a path leads to, with the first head bytes at most. What is not a file is not opened. A path that leads to nothing or to a
// folder is ErrNotFound; a host that does not show it is ErrCannotTell.
func (h *Host) File(ctx context.Context, path string, head int) (File, error) {
	return lookAt(ctx, h, path, func(l *libvirt.Libvirt, p libvirt.StoragePool, k look, bound location) (File, error) {
		is := File{At: strings.Join([]string{bound.filesystem, bound.source, bound.path}, "\n")}
		var err error
		if is.Head, err = k.head(l, p, head); err == nil {
			is.Length, is.Modified, err = k.written(l, p)
		}
		if err == nil {
			err = k.checkBound(l, bound)
		}
		return is, err
	})
}

// checkBound is errDisturbed if another look has ended the mount.
func (k look) checkBound(l *libvirt.Libvirt, bound location) error {
	seen, err := mounts(l, k.name)
	if at := mountsAt(seen, k.folder()+"/"+lookBound); err == nil && (len(at) == 0 || at[0].location != bound) {
		err = errDisturbed
	}
	return err
}

// written is how long the bound file is, and when it was written to last.
func (k look) written(l *libvirt.Libvirt, p libvirt.StoragePool) (length int64, modified string, err error) {
	v, err := l.StorageVolLookupByName(p, lookBound)
	if isCode(err, libvirt.ErrNoStorageVol) || isCode(err, libvirt.ErrNoStoragePool) {
		return 0, "", errDisturbed
	}
	if err != nil {
		return 0, "", err
	}
	is, err := describe(l, v)
	if err == nil && is.err != nil {
		return 0, "", nil //nolint:nilerr // it is no file, or root may not read it
	}
	return is.Physical, is.Modified, err
}

// head is what the bound file begins with, if it is a file that can be read.
func (k look) head(l *libvirt.Libvirt, p libvirt.StoragePool, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	v, err := l.StorageVolLookupByName(p, lookBound)
	if isCode(err, libvirt.ErrNoStorageVol) || isCode(err, libvirt.ErrNoStoragePool) {
		return nil, errDisturbed
	}
	if err != nil {
		return nil, err
	}
	if _, size, _, err := l.StorageVolGetInfo(v); err != nil || size == 0 { // libvirt opens neither a FIFO nor a socket, and the mount no device
		return nil, nil //nolint:nilerr // it is no file
	}
	return readHostFile(l, k.name, k.folder()+"/"+lookBound, n)
}

// lookAt calls f with what is bound from the path.
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

// run binds the path over a file of a new pool, which the caller closes unless there is an error.
func (k look) run(ctx context.Context, l *libvirt.Libvirt) (p libvirt.StoragePool, bound location, err error) {
	if k.host.hidesMounts.Load() {
		return p, bound, ErrCannotTell
	}
	if _, err := mounts(l, k.name); err != nil { // what can't be seen couldn't be unmounted
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

// closed closes the pool after an error. That it could not be closed comes first: callers go on if nothing is there.
func (k look) closed(l *libvirt.Libvirt, p libvirt.StoragePool, err error) error {
	return cmp.Or(k.close(l, p), err)
}

// bound is where the path really is, once it is bound over the volume.
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

// open makes the pool, which has one user at a time: libvirt refuses a second one of its name.
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
		if failed == nil && other.UUID != seen { // each look has its time
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

// define defines the pool, whose folder, once it is built, only the host's root can pass.
func (k look) define(l *libvirt.Libvirt) (p libvirt.StoragePool, err error) {
	pool := bindPool(k.name, "", k.folder(), k.folder(), "bind")
	pool.Target.Permissions = &libvirtxml.StoragePoolTargetPermissions{Mode: privateMode}
	xml, err := pool.Marshal()
	if err != nil {
		return p, err
	}
	return l.StoragePoolDefineXML(xml, 0)
}

// start mounts the pool. Whether the host hides its mounts is known by this one only: tenants name the others.
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

// create makes the volume, unless an interrupted look has left it.
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

// bind mounts the path over the volume and tells where it really is; nowhere if it could not be mounted, which has failed then.
// The pool that mounts never starts, since its target is no folder, so that there is nothing to be listed.
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

// read refuses what is bound unless it is a regular file, at the path by which it was named.
func (k look) read(l *libvirt.Libvirt, p libvirt.StoragePool, bound location, head int) (content []byte, err error) {
	v, err := l.StorageVolLookupByName(p, lookBound)
	if isCode(err, libvirt.ErrNoStorageVol) || isCode(err, libvirt.ErrNoStoragePool) {
		return nil, errDisturbed
	}
	if err != nil {
		return nil, err
	}
	target := k.folder() + "/" + lookBound
	_, size, _, opened := l.StorageVolGetInfo(v)
	if opened == nil && head > 0 {
		content, opened = readHostFile(l, k.name, target, head)
	}
	seen, err := mounts(l, k.name)
	if err != nil {
		return nil, err
	}
	at := mountsAt(seen, target)
	if len(at) == 0 || at[0].location != bound {
		return nil, errDisturbed
	}
	switch named := locate(seen, k.path); {
	case named != bound:
		return nil, fmt.Errorf("%w: it, or a folder above it, is a symbolic link to %q", ErrNotRegular, bound.path)
	case isCode(opened, libvirt.ErrInternalError):
		return nil, fmt.Errorf("%w: %w", ErrNotRegular, opened) // libvirt does not open a FIFO or a socket
	case isCode(opened, libvirt.ErrSystemError) && (at[0].refusesRoot() || hasSELinux(l)):
		return nil, fmt.Errorf("%w: %w", ErrCannotTell, opened)
	case isCode(opened, libvirt.ErrSystemError):
		return nil, fmt.Errorf("%w: %w", ErrNotRegular, opened) // nodev prevents opening a device
	case opened == nil && size == 0: // such as the volume itself
		return nil, fmt.Errorf("%w: it is empty", ErrNotRegular)
	default:
		return content, opened
	}
}

// EndLook ends what an interrupted look at a path has left. Otherwise only the next look at that path does, and the filesystem stays mounted
// until then.
func (h *Host) EndLook(ctx context.Context, path string) error {
	left, err := call(ctx, h, "look for a look at "+path, func(l *libvirt.Libvirt) (bool, error) {
		_, err := l.StoragePoolLookupByName(h.look(path).name)
		if isCode(err, libvirt.ErrNoStoragePool) {
			return false, nil
		}
		return err == nil, err
	})
	if left {
		_, err = h.RegularFile(ctx, path, 0)
	}
	if errors.Is(err, ErrNotRegular) || errors.Is(err, ErrCannotTell) {
		return nil
	}
	return err
}

// stands reports whether the pool has its volume, as libvirt sees its file now.
func (k look) stands(l *libvirt.Libvirt, p libvirt.StoragePool) bool {
	v, err := l.StorageVolLookupByName(p, lookBound)
	if err == nil {
		_, _, _, err = l.StorageVolGetInfo(v)
	}
	return err == nil
}

// hasSELinux reports whether SELinux may refuse libvirt to open a file.
func hasSELinux(l *libvirt.Libvirt) bool {
	caps, err := capabilities(l)
	return err == nil && slices.ContainsFunc(caps.Host.SecModel, func(m libvirtxml.CapsHostSecModel) bool { return m.Name == "selinux" })
}

// close ends the mounts and the pool.
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
	_ = l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal) // its folder, which is missing where the pool could not be built
	err := l.StoragePoolUndefine(p)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}
