package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// lookPrefix is the prefix of the names of NetworkHead's pools.
const lookPrefix = "virtclaim-look-"

// NetworkHead returns the first n bytes of a network image. partXML is its <disk> element, with a slice of that size. libvirt reads only
// files and devices of its host, so QEMU copies the bytes into a file, in a storage pool that exists only for that. The pool's name is
// derived from the element, so that the next look removes what a killed one has left.
func (h *Host) NetworkHead(ctx context.Context, partXML string, n int64) (head []byte, err error) {
	const op, file = "look at the beginning of the volume", "head"
	sum := sha256.Sum256([]byte(partXML))
	name := lookPrefix + hex.EncodeToString(sum[:8])
	release, err := h.folders.lock(ctx, name)
	if err != nil {
		return nil, h.failed(op, err)
	}
	defer release()
	if err := do(ctx, h, op, func(l *libvirt.Libvirt) error { return openLook(l, name, file, n) }); err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		err = errors.Join(err, do(ctx, h, op, func(l *libvirt.Libvirt) error { return endLook(l, name, file) }))
	}()
	to := fmt.Sprintf("<disk type='file'><driver name='qemu' type='raw'/><source file='%s/%s'/><target dev='vda' bus='virtio'/></disk>",
		inspectTargets+name, file)
	if err := h.CopyDisk(ctx, partXML, to); err != nil {
		return nil, err
	}
	return h.VolumeHead(ctx, name, file, uint64(n))
}

func openLook(l *libvirt.Libvirt, name, file string, n int64) error {
	if err := endLook(l, name, file); err != nil {
		return err
	}
	pool := libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{
		Path:        inspectTargets + name,
		Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: "0711"}, // QEMU need not be root
	}}
	xml, err := pool.Marshal()
	if err != nil {
		return err
	}
	p, err := l.StoragePoolDefineXML(xml, 0)
	if err == nil {
		err = l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild)
	}
	if err != nil {
		return err
	}
	size := &libvirtxml.StorageVolumeSize{Value: uint64(n), Unit: "bytes"}
	xml, err = (&libvirtxml.StorageVolume{
		Name: file, Capacity: size, Allocation: size,
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}).Marshal()
	if err == nil {
		_, err = l.StorageVolCreateXML(p, xml, 0)
	}
	return err
}

// endLook removes the pool with its folder, if there is one.
func endLook(l *libvirt.Libvirt, name, file string) error {
	p, err := l.StoragePoolLookupByName(name)
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild) // it is off after a restart of libvirtd
	v, err := l.StorageVolLookupByName(p, file)
	if err == nil {
		err = l.StorageVolDelete(v, 0)
	}
	if err != nil && !isCode(err, libvirt.ErrNoStorageVol) {
		return err // the file would be left without its pool
	}
	return errors.Join(l.StoragePoolDestroy(p), l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal), l.StoragePoolUndefine(p))
}
