package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// lookPrefix is the prefix of the names of NetworkHead's pools.
const lookPrefix = "virtclaim-look-"

// lookFile is the name of the file in them.
const lookFile = "head"

// look is a storage pool that exists only for a look at a network image. Its name is derived from the image, so that the next look ends
// what a killed one has left; its UUID is random, so that a look notices when another process has taken it for such a one.
type look struct {
	name string
	uuid uuid.UUID
}

// NetworkHead returns the first n bytes of a network image. partXML is its <disk> element, with a slice of that size. libvirt reads only
// files and devices of its host, so QEMU copies the bytes into a file of a storage pool.
func (h *Host) NetworkHead(ctx context.Context, partXML string, n int64) (head []byte, err error) {
	sum := sha256.Sum256([]byte(partXML))
	name := lookPrefix + hex.EncodeToString(sum[:8])
	release, err := h.folders.lock(ctx, name)
	if err != nil {
		return nil, h.failed("wait for a look at the volume", err)
	}
	defer release()
	for range tries {
		head, err = h.look(ctx, look{name, uuid.New()}, partXML, n)
		if !errors.Is(err, errDisturbed) {
			break
		}
	}
	return head, err
}

func (h *Host) look(ctx context.Context, k look, partXML string, n int64) (head []byte, err error) {
	const op = "look at the beginning of the volume"
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		err = errors.Join(err, do(ctx, h, op, func(l *libvirt.Libvirt) error { return endLook(l, k.pool()) }))
	}()
	if err := do(ctx, h, op, func(l *libvirt.Libvirt) error { return k.open(ctx, l, n) }); err != nil {
		return nil, err
	}
	to := fmt.Sprintf("<disk type='file'><driver name='qemu' type='raw'/><source file='%s/%s'/><target dev='vda' bus='virtio'/></disk>",
		inspectTargets+k.name, lookFile)
	if err = h.CopyDisk(ctx, partXML, to); err == nil {
		head, err = h.VolumeHead(ctx, k.name, lookFile, uint64(n))
	}
	// What was read by the pool's name is of this look only if the pool still is.
	is := do(ctx, h, op, func(l *libvirt.Libvirt) error {
		_, err := l.StorageVolLookupByName(k.pool(), lookFile)
		if isGone(err) {
			return errDisturbed
		}
		return err
	})
	return head, errors.Join(is, err)
}

func (k look) pool() libvirt.StoragePool {
	return libvirt.StoragePool{Name: k.name, UUID: libvirt.UUID(k.uuid)}
}

// open makes the pool and its file, once the one of another look is gone, or has been left.
func (k look) open(ctx context.Context, l *libvirt.Libvirt, n int64) error {
	pool := libvirtxml.StoragePool{Type: "dir", Name: k.name, UUID: k.uuid.String(), Target: &libvirtxml.StoragePoolTarget{
		Path:        inspectTargets + k.name,
		Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: "0711"}, // QEMU need not be root
	}}
	xml, err := pool.Marshal()
	if err != nil {
		return err
	}
	define := func() error { _, err := l.StoragePoolDefineXML(xml, 0); return err }
	if err := takePool(ctx, l, k.name, define, func(left libvirt.StoragePool) error { return endLook(l, left) }); err != nil {
		return err
	}
	if err := l.StoragePoolCreate(k.pool(), libvirt.StoragePoolCreateWithBuild); err != nil {
		return err
	}
	size := &libvirtxml.StorageVolumeSize{Value: uint64(n), Unit: "bytes"}
	file, err := (&libvirtxml.StorageVolume{
		Name: lookFile, Capacity: size, Allocation: size,
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}).Marshal()
	if err == nil {
		_, err = l.StorageVolCreateXML(k.pool(), file, 0)
	}
	return err
}

// endLook removes a pool with its folder, if it is there.
func endLook(l *libvirt.Libvirt, p libvirt.StoragePool) error {
	err := l.StoragePoolCreate(p, libvirt.StoragePoolCreateWithBuild) // it is off after a restart of libvirtd
	if isCode(err, libvirt.ErrNoStoragePool) {
		return nil
	}
	v, err := l.StorageVolLookupByName(p, lookFile)
	if err == nil {
		err = l.StorageVolDelete(v, 0)
	}
	if err != nil && !isCode(err, libvirt.ErrNoStorageVol) {
		return err // the file would be left without its pool
	}
	return errors.Join(l.StoragePoolDestroy(p), l.StoragePoolDelete(p, libvirt.StoragePoolDeleteNormal), l.StoragePoolUndefine(p))
}
