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

// ErrNotRegular is the error of a path where no regular file is, or that leads to one by a symbolic link.
var ErrNotRegular = errors.New("there is no regular file: it is missing, or it is a symbolic link, a FIFO, a device or a folder")

// ErrCannotTell is the error of a host that does not show what is at a path: its libvirt may not mount.
var ErrCannotTell = errors.New("the host can't tell regular files from symbolic links")

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

// hasSELinux reports whether SELinux may refuse libvirt to open a file.
func hasSELinux(l *libvirt.Libvirt) bool {
	caps, err := capabilities(l)
	return err == nil && slices.ContainsFunc(caps.Host.SecModel, func(m libvirtxml.CapsHostSecModel) bool { return m.Name == "selinux" })
}
