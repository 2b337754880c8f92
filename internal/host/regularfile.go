package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// ErrNotRegular is the error of a path that is not a regular file, or leads to one by a symbolic link.
var ErrNotRegular = errors.New("there is no regular file: it is missing, or it is a symbolic link, a FIFO, a device or a folder")

// ErrCannotTell is the error of a host on which the type of a file can't be determined: its libvirt may not mount, or not open the file.
var ErrCannotTell = errors.New("the host can't tell regular files from symbolic links")

// File is the file that a path leads to.
type File struct {
	// Head are the file's first bytes; empty for a FIFO, a socket, a device, and a file that the host's root may not read.
	Head []byte
	// Length is in bytes, Modified is the modification time in libvirt's format; empty if libvirt can't open the file.
	Length   int64
	Modified string
	// Irregular is nil for a regular, non-empty file of which neither the path itself nor a folder above it is a symbolic link. Otherwise
	// it is ErrNotRegular, or ErrCannotTell if the host's root may not read the file.
	Irregular error
}

// File returns the file that a path leads to, with at most head of its first bytes. Special files are not opened. ErrNotFound is the error
// of a missing file or a folder, ErrCannotTell that of a host that can't mount.
//
// libvirt has no call that distinguishes a link from its target, so the path is bind-mounted over a file of its own: the mount table has
// the real location, and libvirt reports the type without opening special files. The folder is not listed and the content not interpreted,
// for which libvirt would open the files that a qcow2 header names.
func (h *Host) File(ctx context.Context, path string, head int) (is File, err error) {
	k := h.inspection(path)
	release, err := h.folders.lock(ctx, k.name)
	if err != nil {
		return is, h.failed("wait for an inspection of "+path, err)
	}
	defer release()
	for range tries {
		is, err = call(ctx, h, "inspect "+path, func(l *libvirt.Libvirt) (File, error) { return k.run(ctx, l, head) })
		if !errors.Is(err, errDisturbed) {
			break
		}
	}
	if is.Irregular != nil {
		is.Irregular = h.failed("inspect "+path, is.Irregular)
	}
	return is, err
}

// irregular is File.Irregular of the bound file, which libvirt could open or not.
func (k inspection) irregular(l *libvirt.Libvirt, seen []mount, at mount, is File, opened error) error {
	switch {
	case locate(seen, k.path) != at.location:
		return fmt.Errorf("%w: it, or a folder above it, is a symbolic link to %q", ErrNotRegular, at.path)
	case isCode(opened, libvirt.ErrInternalError):
		return fmt.Errorf("%w: %w", ErrNotRegular, opened) // libvirt does not open a FIFO or a socket
	case isCode(opened, libvirt.ErrSystemError) && (at.refusesRoot() || hasSELinux(l)):
		return fmt.Errorf("%w: %w", ErrCannotTell, opened)
	case isCode(opened, libvirt.ErrSystemError):
		return fmt.Errorf("%w: %w", ErrNotRegular, opened) // nodev prevents opening a device
	case opened == nil && is.Length == 0: // such as the volume itself
		return fmt.Errorf("%w: it is empty", ErrNotRegular)
	default:
		return opened
	}
}

// EndInspection removes the pool and mount of an interrupted inspection at a path. Otherwise the filesystem would stay mounted until the
// next inspection of it.
func (h *Host) EndInspection(ctx context.Context, path string) error {
	left, err := call(ctx, h, "look for an inspection of "+path, func(l *libvirt.Libvirt) (bool, error) {
		_, err := l.StoragePoolLookupByName(h.inspection(path).name)
		if isCode(err, libvirt.ErrNoStoragePool) {
			return false, nil
		}
		return err == nil, err
	})
	if left {
		_, err = h.File(ctx, path, 0)
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
