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
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// errDisturbed is the error of an inspection that another process has ended.
var errDisturbed = errors.New("another apply inspects the same path")

// inspectTime is how long another process may inspect the same path; an older inspection was left by an interrupted one.
const inspectTime = 5 * time.Second

// inspection is a private storage pool with an empty volume, over which the path is bind-mounted. The pool's folder is bound onto itself:
// that shows whether the host can mount at all, and a restarted libvirtd takes such a pool for inactive, because the mount table has
// another source, and does not read the file's header. The pool's name is derived from the path, so that the next apply finds the pool of
// an interrupted one.
type inspection struct {
	host       *Host
	name, path string
}

// inspectPrefix is the prefix of the names of these pools.
const inspectPrefix = "virtclaim-inspect-"

// inspectTargets is the folder below which these pools are mounted, in a folder of libvirt's that every host has.
const inspectTargets = "/run/libvirt/virtclaim/"

// privateMode is the mode of these pools' folders: the original folders of the files in them may be inaccessible for other users.
const privateMode = "0700"

// inspectBound is the name of the volume.
const inspectBound = "bound"

func (h *Host) inspection(path string) inspection {
	sum := sha256.Sum256([]byte(path))
	return inspection{h, inspectPrefix + hex.EncodeToString(sum[:8]), path}
}

func (k inspection) folder() string { return inspectTargets + k.name }

func (k inspection) target() string { return k.folder() + "/" + inspectBound }

// run inspects once. The error of closing is returned first, because callers continue after ErrNotFound.
func (k inspection) run(ctx context.Context, l *libvirt.Libvirt, head int) (is File, err error) {
	if k.host.hidesMounts.Load() {
		return is, ErrCannotTell
	}
	p, err := k.open(ctx, l)
	if err != nil {
		return is, err
	}
	is, seen, err := k.see(l, p, head)
	if isGone(err) {
		err = fmt.Errorf("%w: %w", errDisturbed, err)
	}
	if errors.Is(err, errDisturbed) { // what has the pool's name may be another process's inspection
		return is, errors.Join(err, k.endReader(l, p))
	}
	return is, cmp.Or(k.close(l, p, seen), err)
}

// isGone reports whether libvirt does not have an inspection's pool, volume or domain any more.
func isGone(err error) bool {
	return isCode(err, libvirt.ErrNoStoragePool) || isCode(err, libvirt.ErrNoStorageVol) || isCode(err, libvirt.ErrNoDomain)
}

// see binds the path, and reads the file and then the mount table: if that has the mount, and the pool is this inspection's afterwards,
// what was read before is of that file. It also returns the last table, as far as it was read.
func (k inspection) see(l *libvirt.Libvirt, p libvirt.StoragePool, head int) (is File, seen []mount, err error) {
	d := libvirt.Domain{Name: k.name, UUID: p.UUID, ID: -1}
	length := maxHostFile
	table := func() ([]byte, error) {
		defer func() { length = maxHostFile }() // it may have grown since its length was seen
		return readUpTo(length, peekAt(l, d, "vda"))
	}
	if seen, err = k.start(l, p, table); err != nil {
		return is, seen, err
	}
	missing, err := k.bind(l)
	if err != nil {
		return is, nil, err
	}
	var opened error
	err = together(
		func() (err error) {
			is, opened, err = k.read(l, peekAt(l, d, "vdb"), head)
			return err
		},
		func() error { // the table, which has the mount by now, is read after the file
			_, err := peekAt(l, d, "vda")(length)
			length = cmp.Or(available(err), length)
			return nil
		})
	if err != nil {
		return is, nil, err
	}
	if seen, err = readMounts(table); err != nil {
		return is, nil, err
	}
	if _, err := l.StorageVolLookupByName(p, inspectBound); err != nil { // by the pool's UUID
		return is, seen, err
	}
	at := mountsAt(seen, k.target())
	switch {
	case len(mountsAt(seen, k.folder())) == 0, len(at) == 0 && opened != nil:
		return is, seen, errDisturbed
	case len(at) == 0:
		return is, seen, fmt.Errorf("%w: %w: %w", ErrNotFound, ErrNotRegular, missing)
	}
	is.Irregular = k.irregular(l, seen, at[0], is, opened)
	return is, seen, nil
}

// read reads the bound file unless libvirt can't open it: it opens no FIFO or socket, and the mount option nodev no device.
func (k inspection) read(l *libvirt.Libvirt, peek peek, head int) (is File, opened, err error) {
	text, err := l.StorageVolGetXMLDesc(k.volume(), 0)
	if isUndescribed(err) {
		return is, err, nil
	}
	if err != nil {
		return is, nil, err
	}
	v, err := readVolume(k.volume(), text)
	is.Length, is.Modified = v.Physical, v.Modified
	if n := min(int64(head), is.Length); err == nil && n > 0 {
		is.Head, err = readUpTo(int(n), peek)
	}
	return is, nil, err
}

// volume is the pool's volume, as libvirt would return it.
func (k inspection) volume() libvirt.StorageVol {
	return libvirt.StorageVol{Pool: k.name, Name: inspectBound, Key: k.target()}
}

// open defines the pool.
func (k inspection) open(ctx context.Context, l *libvirt.Libvirt) (p libvirt.StoragePool, err error) {
	err = takePool(ctx, l, k.name,
		func() (err error) { p, err = k.define(l); return err },
		func(left libvirt.StoragePool) error { return k.close(l, left, nil) })
	return p, err
}

// takePool calls define for a pool that has one user at a time: libvirt refuses a second one of its name. One that has been there for
// longer than inspectTime was left by an interrupted user, and is ended.
func takePool(ctx context.Context, l *libvirt.Libvirt, name string, define func() error, end func(libvirt.StoragePool) error) error {
	var seen libvirt.UUID
	for deadline := time.Now(); ; {
		err := define()
		if err == nil {
			return nil
		}
		other, failed := l.StoragePoolLookupByName(name)
		switch {
		case isCode(failed, libvirt.ErrNoStoragePool): // its user has just ended
		case failed != nil:
			return errors.Join(err, failed)
		case other.UUID != seen: // each user has its own inspectTime
			seen, deadline = other.UUID, time.Now().Add(inspectTime)
		case time.Now().After(deadline):
			if err := end(other); err != nil && !errors.Is(err, errDisturbed) {
				return err
			}
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// define defines the pool, whose folder, once built, is only accessible for the host's root.
func (k inspection) define(l *libvirt.Libvirt) (p libvirt.StoragePool, err error) {
	pool := bindPool(k.name, k.folder(), k.folder(), "bind")
	pool.Target.Permissions = &libvirtxml.StoragePoolTargetPermissions{Mode: privateMode}
	xml, err := pool.Marshal()
	if err != nil {
		return p, err
	}
	return l.StoragePoolDefineXML(xml, 0)
}

// start mounts the pool, and creates its volume unless an interrupted inspection has left it. The first inspection reads the mount table
// before, because nothing could be unmounted without it, and shows whether mounts can be seen. Only the pool's own mount decides whether
// the host hides its mounts, because tenants control the paths of the others.
func (k inspection) start(l *libvirt.Libvirt, p libvirt.StoragePool, table func() ([]byte, error)) (seen []mount, err error) {
	var failed error
	mount := func() error {
		failed = l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
		return nil
	}
	isSeen := k.host.showsMounts.Load()
	if isSeen {
		err = together(func() error { return k.defineReader(l, p) }, mount)
	} else if err = k.defineReader(l, p); err == nil {
		if _, err := readMounts(table); err != nil {
			k.host.hidesMounts.Store(isUndescribed(err))
			return nil, errors.Join(ErrCannotTell, err)
		}
		_ = mount()
	}
	if err != nil {
		return nil, err
	}
	if failed != nil || !isSeen {
		if seen, err = k.started(l, p, table, failed); err != nil {
			return seen, err
		}
	}
	empty := libvirtxml.StorageVolume{
		Name: inspectBound, Capacity: &libvirtxml.StorageVolumeSize{Value: 0},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}
	xml, err := empty.Marshal()
	if err == nil {
		_, err = l.StorageVolCreateXML(p, xml, 0)
	}
	if isCode(err, libvirt.ErrStorageVolExist) {
		err = nil
	}
	return seen, err
}

// started finds out whether the pool is mounted, after its start returned an error or nil.
func (k inspection) started(l *libvirt.Libvirt, p libvirt.StoragePool, table func() ([]byte, error),
	failed error,
) (seen []mount, err error) {
	seen, err = readMounts(table)
	switch {
	case err != nil:
		return nil, errors.Join(failed, err)
	case len(mountsAt(seen, k.folder())) > 0:
		k.host.showsMounts.Store(true)
		return seen, failed
	case failed == nil:
		if active, err := l.StoragePoolIsActive(p); err != nil || active == 0 {
			return seen, errDisturbed
		}
		k.host.hidesMounts.Store(true)
		return seen, ErrCannotTell
	case isCode(failed, libvirt.ErrInternalError): // the mount command failed
		return seen, fmt.Errorf("%w: %w", ErrCannotTell, failed)
	default:
		return seen, failed
	}
}

// bind mounts the path over the volume. The pool with which libvirt mounts never starts, because its target is not a folder: libvirt lists
// no files. failed is also the reason if it could not be mounted.
func (k inspection) bind(l *libvirt.Libvirt) (failed, err error) {
	xml, err := bindPool(k.name+"-bind", k.path, k.target(), "bind").Marshal()
	if err != nil {
		return nil, err
	}
	p, failed := l.StoragePoolCreateXML(xml, 0)
	if failed == nil {
		err = errors.Join(errors.New("libvirt takes a file for a folder"), endPassing(l, p))
	}
	return failed, err
}

// close unmounts the path, by a table that has the mounts, and removes the pool. What is mounted nevertheless can't be deleted: only then
// the table is read again.
func (k inspection) close(l *libvirt.Libvirt, p libvirt.StoragePool, seen []mount) error {
	err := k.endReader(l, p)
	if err != nil {
		return err
	}
	if err = errUnseen; seen != nil {
		err = k.unmount(l, p, func(target string) error { _ = k.host.unmountSeen(l, k.name, seen, target, false); return nil })
		if err == nil {
			err = l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal)
		}
	}
	if err != nil && !errors.Is(err, errDisturbed) {
		err = k.unmount(l, p, func(target string) error { return k.host.unmount(l, k.name, target) })
		if err == nil {
			_ = l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal) // the folder is missing if the pool could not be built
		}
	}
	if err == nil {
		err = l.StoragePoolUndefine(p)
	}
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// unmount unmounts the path, and stops the pool. After a restart of libvirtd, this is inactive, and the next inspection deletes the volume.
func (k inspection) unmount(l *libvirt.Libvirt, p libvirt.StoragePool, unmount func(target string) error) error {
	if err := unmount(k.target()); err != nil {
		return err
	}
	err := l.StorageVolDelete(k.volume(), 0)
	if err != nil && !isGone(err) && !isCode(err, libvirt.ErrOperationInvalid) {
		return err
	}
	err = l.StoragePoolDestroy(p)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return errDisturbed
	}
	if err != nil && !isCode(err, libvirt.ErrOperationInvalid) {
		return err
	}
	return unmount(k.folder())
}

// defineReader defines the domain with which files are read.
func (k inspection) defineReader(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	_, err := l.DomainDefineXML(diskDomain(k.name, uuid.UUID(p.UUID), fileDisk("vda", mountTable)+fileDisk("vdb", k.target())))
	return err
}

// endReader removes the domain with which files are read. It has the pool's UUID.
func (k inspection) endReader(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	err := l.DomainUndefineFlags(libvirt.Domain{Name: k.name, UUID: p.UUID, ID: -1}, 0)
	if isCode(err, libvirt.ErrNoDomain) {
		return nil
	}
	return err
}
