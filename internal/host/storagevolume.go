package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// StorageVolume is a libvirt storage volume, such as a file in a pool.
type StorageVolume struct {
	Pool, Name string
	// Type is file, block or network, by the kind of pool.
	Type string
	// Path is the path on the host. Key is libvirt's key: for a logical volume it is the UUID assigned by LVM, for all others just a
	// name.
	Path, Key string
	// Format is raw, qcow2 or another one that libvirt detects by the file's header.
	Format string
	// Capacity is the size in bytes for a guest, if Format is right. Physical is the length of the file.
	Capacity, Physical int64
	// Modified is the modification time of the file, in libvirt's format.
	Modified string
	// Backing is the path or URL of the backing image in the file's header; empty without one.
	Backing string
	// Undescribed tells that libvirt can't parse the file's header: only the names, the type and the path are known.
	Undescribed bool
}

// onVolume calls f with a volume, which libvirt finds by the names of pool and volume alone, without a lookup before. A volume that libvirt
// does not list may have been created without it, and one that is deleted would prevent that it is created again: so the pool is refreshed.
func onVolume[T any](ctx context.Context, h *Host, op, pool, name string,
	f func(*libvirt.Libvirt, libvirt.StorageVol) (T, error),
) (T, error) {
	op = fmt.Sprintf("%s %s in storage pool %s", op, name, pool)
	return call(ctx, h, op, func(l *libvirt.Libvirt) (T, error) {
		value, err := f(l, libvirt.StorageVol{Pool: pool, Name: name})
		if isCode(err, libvirt.ErrNoStorageVol) {
			if err = rescan(ctx, h, l, pool); err == nil && ctx.Err() != nil {
				err = context.Cause(ctx) // the caller has returned: nothing may be changed after that
			}
			if err == nil {
				value, err = f(l, libvirt.StorageVol{Pool: pool, Name: name})
			}
		}
		if isCode(err, libvirt.ErrOperationInvalid) {
			// it explains the error
			value, err = withPool(ctx, h, l, pool, func(*libvirt.Libvirt, libvirt.StoragePool) (T, error) { return value, err })
		}
		if isCode(err, libvirt.ErrNoStoragePool) {
			err = ErrNoPool
		}
		return value, err
	})
}

// CreateVolume creates a volume. ErrExists is the error of an existing volume of the name, or a file that the pool does not list.
// preallocate allocates the tables of a qcow2 image.
func (h *Host) CreateVolume(ctx context.Context, pool string, xml libvirtxml.StorageVolume, preallocate bool) error {
	text, err := xml.Marshal()
	if err != nil {
		return err
	}
	_, err = onPool(ctx, h, fmt.Sprintf("make volume %s in storage pool %s", xml.Name, pool), pool,
		func(l *libvirt.Libvirt, p libvirt.StoragePool) (struct{}, error) {
			var flags libvirt.StorageVolCreateFlags
			if preallocate {
				flags = libvirt.StorageVolCreatePreallocMetadata
			}
			_, err := l.StorageVolCreateXML(p, text, flags)
			if isCode(err, libvirt.ErrOperationInvalid) {
				if active, failed := l.StoragePoolIsActive(p); failed != nil || active != 0 {
					err = fmt.Errorf("%w: %w", ErrExists, err) // libvirt's code for an existing file
				}
			}
			return struct{}{}, err
		})
	return err
}

// ErrUndescribed is the error of a volume that libvirt can't describe: its storage has errors, or its header, which the guest of a raw disk
// can write, names a file that can't be opened. Only the pool, the names, the type and the path of such a volume are known.
var ErrUndescribed = errors.New("libvirt can't describe the volume. Either its storage has an error now, or the beginning of the file " +
	"names something that can't be looked at, which the guest of a raw disk can write")

// described is a volume, or the error because of which libvirt can't describe it.
type described struct {
	StorageVolume
	err error
}

func (h *Host) described(d described, err error, op string) (StorageVolume, error) {
	if err == nil && d.err != nil {
		err = h.failed(op, d.err)
	}
	return d.StorageVolume, err
}

// Volume describes a volume as its file is now, or returns ErrNotFound, or ErrUndescribed with the known fields.
func (h *Host) Volume(ctx context.Context, pool, name string) (StorageVolume, error) {
	d, err := onVolume(ctx, h, "look at volume", pool, name, describe)
	return h.described(d, err, fmt.Sprintf("look at volume %s in storage pool %s", name, pool))
}

// HasVolume reports whether a pool has a volume of that name, also if libvirt can't describe it, or it was created without libvirt.
func (h *Host) HasVolume(ctx context.Context, pool, name string) (bool, error) {
	return onPool(ctx, h, fmt.Sprintf("look for volume %s in storage pool %s", name, pool), pool,
		func(l *libvirt.Libvirt, p libvirt.StoragePool) (bool, error) {
			if err := refresh(ctx, l, p); err != nil {
				return false, err
			}
			_, err := l.StorageVolLookupByName(p, name)
			if isCode(err, libvirt.ErrNoStorageVol) {
				return false, nil
			}
			return err == nil, err
		})
}

// VolumeAt is Volume for the volume of that path, in any active pool.
func (h *Host) VolumeAt(ctx context.Context, path string) (StorageVolume, error) {
	op := "look at volume " + path
	d, err := call(ctx, h, op, func(l *libvirt.Libvirt) (described, error) {
		v, err := l.StorageVolLookupByPath(path)
		if err != nil {
			return described{}, err
		}
		return describe(l, v)
	})
	return h.described(d, err, op)
}

// undescribed are libvirt's codes for a header that it can't parse.
var undescribed = []libvirt.ErrorNumber{
	libvirt.ErrInternalError, libvirt.ErrSystemError, libvirt.ErrInvalidArg, libvirt.ErrOperationFailed, libvirt.ErrConfigUnsupported,
	libvirt.ErrXMLError,
}

func isUndescribed(err error) bool {
	return slices.ContainsFunc(undescribed, func(code libvirt.ErrorNumber) bool { return isCode(err, code) })
}

func describe(l *libvirt.Libvirt, v libvirt.StorageVol) (described, error) {
	text, err := l.StorageVolGetXMLDesc(v, 0)
	if isUndescribed(err) {
		path, failed := l.StorageVolGetPath(v)
		s := StorageVolume{Pool: v.Pool, Name: v.Name, Key: path, Type: "file", Path: path, Undescribed: true}
		return described{s, fmt.Errorf("%w: %w", ErrUndescribed, err)}, failed
	}
	if err != nil {
		return described{}, err
	}
	s, err := readVolume(v, text)
	return described{StorageVolume: s}, err
}

// ploop is the type that libvirt reports for a file that begins as a Parallels image, which the guest of a raw disk can write. Real
// ploop volumes are directories.
const ploop = "ploop"

func readVolume(v libvirt.StorageVol, text string) (StorageVolume, error) {
	var xml libvirtxml.StorageVolume
	if err := xml.Unmarshal(legible(text)); err != nil {
		return StorageVolume{}, err
	}
	s := StorageVolume{Pool: v.Pool, Name: v.Name, Key: xml.Key, Type: xml.Type}
	if s.Type == ploop {
		s.Type = "file"
	}
	if xml.Capacity != nil {
		s.Capacity = int64(xml.Capacity.Value) // libvirt always writes bytes
	}
	if xml.Physical != nil {
		s.Physical = int64(xml.Physical.Value)
	}
	if xml.Target != nil {
		s.Path = xml.Target.Path
		if xml.Target.Timestamps != nil {
			s.Modified = xml.Target.Timestamps.Mtime
		}
		if xml.Target.Format != nil {
			s.Format = xml.Target.Format.Type
		}
	}
	if xml.BackingStore != nil {
		s.Backing = xml.BackingStore.Path
	}
	return s, nil
}

// legible replaces characters that are invalid in XML: libvirt copies the name of the backing file from a volume's header into the XML
// unchanged, and the guest of a raw disk can write headers.
func legible(xml string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF' {
			return utf8.RuneError
		}
		return r // an invalid byte is RuneError already
	}, xml)
}

// Rescan has libvirt read the files of a pool again, also their formats, which it caches.
func (h *Host) Rescan(ctx context.Context, pool string) error {
	return do(ctx, h, "look at storage pool "+pool, func(l *libvirt.Libvirt) error { return rescan(ctx, h, l, pool) })
}

// ResizeVolume grows a volume that no machine uses to a size in bytes. libvirt refuses to shrink it.
func (h *Host) ResizeVolume(ctx context.Context, pool, name string, bytes int64) error {
	_, err := onVolume(ctx, h, "grow volume", pool, name, func(l *libvirt.Libvirt, v libvirt.StorageVol) (struct{}, error) {
		return struct{}{}, l.StorageVolResize(v, uint64(bytes), 0)
	})
	return err
}

// DeleteVolume deletes a volume and its content. It does not check for users.
func (h *Host) DeleteVolume(ctx context.Context, pool, name string) error {
	_, err := onVolume(ctx, h, "delete volume", pool, name, func(l *libvirt.Libvirt, v libvirt.StorageVol) (struct{}, error) {
		return struct{}{}, explainPloop(l, v, l.StorageVolDelete(v, 0))
	})
	return err
}

// explainPloop is the remedy for a file that libvirt takes for a folder and can't delete.
func explainPloop(l *libvirt.Libvirt, v libvirt.StorageVol, err error) error {
	if err == nil {
		return nil
	}
	text, failed := l.StorageVolGetXMLDesc(v, 0)
	var xml libvirtxml.StorageVolume
	if failed != nil || xml.Unmarshal(legible(text)) != nil || xml.Type != ploop || xml.Target == nil {
		return err
	}
	return fmt.Errorf("%w. The file begins as a Parallels image, which the guest of a raw disk can write, and libvirt takes it for a "+
		"folder. Delete the file on the host (%s), and refresh the pool: virsh pool-refresh %s", err, xml.Target.Path, v.Pool)
}

// isOver reports whether the volume's header references a backing file, or may: libvirt can't parse some headers.
func (v StorageVolume) isOver() bool { return v.Undescribed || v.Backing != "" }
