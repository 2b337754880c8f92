package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"

	"github.com/digitalocean/go-libvirt"
)

// bindPrefix is the prefix of the names of the pools with which folders are mounted. They end at once; the mount stays.
const bindPrefix = "virtclaim-bind-"

// ErrNotMounted is the error of a folder below which nothing is mounted.
var ErrNotMounted = errors.New("nothing is mounted there")

// bindMount is a target below which another mount of the host is mounted, too.
type bindMount struct {
	host         *Host
	name, target string
}

func (h *Host) bindMount(target string) bindMount {
	sum := sha256.Sum256([]byte(target))
	return bindMount{h, bindPrefix + hex.EncodeToString(sum[:8]), target}
}

// BindMount mounts at a target what is mounted below a folder under a name, as kubelet does with the volume of a pod:
// <plugin>/<name>[/mount]. No symbolic link is followed there. It stays when the other mount ends. The error is ErrNotMounted if there is
// none. may is called before something changes, and its error keeps it as it is.
func (h *Host) BindMount(ctx context.Context, below, name, target string, may func() error) error {
	return h.bindMount(target).change(ctx, "mount the volume at "+target, func(b bindMount, l *libvirt.Libvirt) error {
		seen, err := mounts(l, b.name)
		if err != nil {
			return err
		}
		from, ok := mountBelow(seen, below, name)
		switch {
		case !ok:
			return ErrNotMounted
		case b.shows(seen, from):
			return b.end(l)
		}
		if err := may(); err != nil {
			return err
		}
		if err := b.remove(l); err != nil { // another mount
			return err
		}
		return b.make(l, from.target)
	})
}

// HasBindMount reports whether BindMount would change nothing.
func (h *Host) HasBindMount(ctx context.Context, below, name, target string) (bool, error) {
	return call(ctx, h, "look at the mounts below "+below, func(l *libvirt.Libvirt) (bool, error) {
		b := h.bindMount(target)
		seen, err := mounts(l, b.name)
		from, ok := mountBelow(seen, below, name)
		return ok && b.shows(seen, from), err
	})
}

// EndBindMount unmounts a target, and removes its folder. One that is in use is an error, and one that is not there is none.
func (h *Host) EndBindMount(ctx context.Context, target string) error {
	return h.bindMount(target).change(ctx, "unmount "+target, bindMount.remove)
}

// change lets one at a time change the mounts at the target.
func (b bindMount) change(ctx context.Context, op string, f func(bindMount, *libvirt.Libvirt) error) error {
	release, err := b.host.folders.lock(ctx, b.name)
	if err != nil {
		return b.host.failed(op, err)
	}
	defer release()
	return do(ctx, b.host, op, func(l *libvirt.Libvirt) error { return f(b, l) })
}

// mountBelow is the last mount of a volume below a folder.
func mountBelow(seen []mount, folder, name string) (found mount, ok bool) {
	for _, m := range seen {
		plain, _ := path.Match(folder+"/*/"+name, m.target)
		ofDriver, _ := path.Match(folder+"/*/"+name+"/mount", m.target)
		if plain || ofDriver {
			found, ok = m, true
		}
	}
	return found, ok
}

// shows reports whether the target shows what another mount does.
func (b bindMount) shows(seen []mount, other mount) bool {
	at := mountsAt(seen, b.target)
	return len(at) > 0 && at[0].location == other.location
}

// end removes the pool of a killed one.
func (b bindMount) end(l *libvirt.Libvirt) error {
	p, err := l.StoragePoolLookupByName(b.name)
	if err == nil {
		if err = endPassing(l, p); err == nil || isCode(err, libvirt.ErrOperationInvalid) { // it is not active
			err = l.StoragePoolUndefine(p)
		}
	}
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	return err
}

// make mounts the folder.
func (b bindMount) make(l *libvirt.Libvirt, source string) error {
	if err := b.end(l); err != nil {
		return err
	}
	xml, err := bindPool(b.name, source, b.target, "bind", noFollow).Marshal()
	if err != nil {
		return err
	}
	p, err := l.StoragePoolCreateXML(xml, libvirt.StoragePoolCreateWithBuild)
	if err != nil {
		return err
	}
	return endPassing(l, p) // libvirt does not unmount it: see unmountSeen
}

// remove unmounts the target. libvirt removes the folder of a pool that is defined.
func (b bindMount) remove(l *libvirt.Libvirt) error {
	if err := errors.Join(b.end(l), b.host.unmount(l, b.name, b.target)); err != nil {
		return err
	}
	xml, err := bindPool(b.name, b.target, b.target).Marshal()
	if err != nil {
		return err
	}
	p, err := l.StoragePoolDefineXML(xml, 0)
	if err != nil {
		return err
	}
	// It is built for the case that it is missing. One that is not empty is an error.
	return errors.Join(l.StoragePoolBuild(p, 0), l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal), l.StoragePoolUndefine(p))
}
