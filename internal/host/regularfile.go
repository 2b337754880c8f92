package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// ErrNotRegular is the error of a path that is not a regular file, or leads to one by a symbolic link.
var ErrNotRegular = errors.New("there is no regular file: it is missing, or it is a symbolic link, a FIFO, a device or a folder")

// ErrCannotTell is the error of a host on which the type of a file can't be determined: its libvirt may not mount, or not open the file.
var ErrCannotTell = errors.New("the host can't tell regular files from symbolic links")

// RegularFile is nil for a path that is a regular, non-empty file, and ErrNotRegular otherwise, also if the path or a parent folder is a symbolic
// link. A missing file is also ErrNotFound. libvirt has no call that distinguishes a link from its target, so the path is bind-mounted over a
// file of its own: the mount table has the real location, and libvirt reports the type without opening special files. The folder is not listed
// and the content not interpreted, for which libvirt would open the files that a qcow2 header names. ErrCannotTell is the error of a host that
// can't mount, or whose root may not read the file. head is how many of the file's first bytes to read, at most.
func (h *Host) RegularFile(ctx context.Context, path string, head int) (content []byte, err error) {
	return lookAt(ctx, h, path, func(l *libvirt.Libvirt, p libvirt.StoragePool, k look, bound location) ([]byte, error) {
		return k.read(l, p, bound, head)
	})
}

// File is the file that a path leads to.
type File struct {
	// At is the same for all paths that lead to one file, by symbolic links, bind mounts or /proc. A second hard link has another value.
	At string
	// Head are the file's first bytes; empty for a FIFO, a socket, a device, and a file that the host's root may not read.
	Head []byte
	// Length is in bytes, Modified is the modification time in libvirt's format; empty if libvirt can't open the file.
	Length   int64
	Modified string
}

// File returns the file that a path leads to, with at most head of its first bytes. Special files are not opened. ErrNotFound is the error of a
// missing file or a folder, ErrCannotTell that of a host that can't mount.
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

// written is the length of the bound file, and its modification time.
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
		return 0, "", nil //nolint:nilerr // it is a special file, or root may not read it
	}
	return is.Physical, is.Modified, err
}

// head are the first bytes of the bound file, if it can be read.
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
	if _, size, _, err := l.StorageVolGetInfo(v); err != nil || size == 0 { // libvirt opens no FIFO or socket, and the mount option nodev no device
		return nil, nil //nolint:nilerr // it is no file
	}
	return readHostFile(l, k.name, k.folder()+"/"+lookBound, n)
}

// read refuses the bound file unless it is a regular file whose real location is the path.
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

// EndLook removes the pool and mount of an interrupted look at a path. Otherwise the filesystem would stay mounted until the next look at it.
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

// hasSELinux reports whether the host has SELinux, which may prevent libvirt from opening a file.
func hasSELinux(l *libvirt.Libvirt) bool {
	caps, err := capabilities(l)
	return err == nil && slices.ContainsFunc(caps.Host.SecModel, func(m libvirtxml.CapsHostSecModel) bool { return m.Name == "selinux" })
}
