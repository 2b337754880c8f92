package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// alignment is the unit of the size of a disk.img, as in KubeVirt: it is a multiple of every sector size.
const alignment = 1 << 20

// inspectTime is the timeout of an inspection of a file.
const inspectTime = 30 * time.Second

// Folders are the calls of a host that MakeDiskImage and CheckRegular need.
type Folders interface {
	File(ctx context.Context, path string, head int) (host.File, error)
	ReadFile(ctx context.Context, path string, limit int) (content []byte, err error)
	CreateIn(ctx context.Context, folder string, volume libvirtxml.StorageVolume) error
	EndFolder(ctx context.Context, folder string) error
}

// MakeDiskImage creates the raw, sparse file of that path, with at most capacity bytes. An existing regular file is not changed; a symbolic
// link is host.ErrNotRegular, and its target is not changed. The pool of a killed apply is ended before a tenant writes to the folder.
func MakeDiskImage(ctx context.Context, h Folders, file string, capacity int64) error {
	if capacity < alignment {
		return fmt.Errorf("%s can't be made: the claim has less than 1 MiB", file)
	}
	err := inspectFile(ctx, h, file)
	if err == nil {
		if err = h.EndFolder(ctx, path.Dir(file)); err != nil {
			err = fmt.Errorf("%s is there, but the storage pool with which a killed apply may have made it can't be ended (virsh "+
				"pool-list): %w", file, err)
		}
		return err
	}
	if errors.Is(err, host.ErrNotFound) {
		err = h.CreateIn(ctx, path.Dir(file), libvirtxml.StorageVolume{
			Name:       path.Base(file),
			Capacity:   &libvirtxml.StorageVolumeSize{Value: uint64(capacity - capacity%alignment), Unit: "bytes"},
			Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
			Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
		})
		if errors.Is(err, host.ErrExists) { // another apply has created it meanwhile, or it is no regular file
			err = inspectFile(ctx, h, file)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s can't be made. A symbolic link or FIFO of that name is never replaced or followed: %w", file,
			explain(err, file))
	}
	return err
}

// CheckRegular refuses bound images in files of the host that are not regular files: a pod that mounts the claim, or another user with
// write access to the folder, could put a symbolic link to any file of the host in their place, which libvirt and QEMU follow. An image
// that is opened as qcow2 must have such a header, which names no other file: it may have changed since the binding was created.
func CheckRegular(ctx context.Context, h Folders, images []volume.Image) (cannotTell error) {
	for _, i := range images {
		if i.Type != "file" || i.Binding == "" {
			continue
		}
		err := checkRegular(ctx, h, i)
		// of this file, for example because root may not read it: the other files are checked nevertheless
		if errors.Is(err, host.ErrCannotTell) {
			cannotTell = cmp.Or(cannotTell, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return cannotTell
}

// Recheck is CheckRegular for images that are bound already, without host.ErrCannotTell: the binding has warned of that.
func Recheck(ctx context.Context, h Folders, images []volume.Image) error {
	err := CheckRegular(ctx, h, images)
	if errors.Is(err, host.ErrCannotTell) {
		return nil
	}
	return err
}

func checkRegular(ctx context.Context, h Folders, i volume.Image) error {
	ctx, cancel := context.WithTimeoutCause(ctx, inspectTime, fmt.Errorf("no answer within %s", inspectTime))
	defer cancel()
	if i.Format == "raw" {
		return explain(inspectFile(ctx, h, i.Name), i.Name)
	}
	seen, look := h.File(ctx, i.Name, image.HeadSize)
	head, look := seen.Head, cmp.Or(look, seen.Irregular)
	if errors.Is(look, host.ErrCannotTell) {
		var err error
		if head, err = h.ReadFile(ctx, i.Name, image.HeadSize); err != nil {
			return fmt.Errorf("%s is not opened as %s, because its header can't be checked before: %s (%s). If you trust its author, "+
				"convert it (%s), or have its server let the host's root read it", i.Name, i.Format, err, look,
				image.ConvertCommand(i.Format, "raw", i.Name))
		}
	} else if look != nil {
		return explain(look, i.Name)
	}
	is, err := image.Probe(head)
	if err == nil && is.Format != i.Format {
		err = fmt.Errorf("it is a %s image", is.Format)
	}
	if err != nil {
		return fmt.Errorf("%s is opened as %s, but its header must not be: %w. Either its format is another one, or something other than "+
			"the guest has changed it: look at a copy with qemu-img info", i.Name, i.Format, err)
	}
	return look
}

// inspectFile is nil for a regular file.
func inspectFile(ctx context.Context, h Folders, file string) error {
	is, err := h.File(ctx, file, 0)
	return cmp.Or(err, is.Irregular)
}

// explain adds to an error the remedy for a file that is not regular.
func explain(err error, file string) error {
	if !errors.Is(err, host.ErrNotRegular) {
		return err
	}
	return fmt.Errorf("%s: %w. Look there with ls -l, and put the image itself in its place: anyone who can write to its folder could "+
		"put a link there that leads to any file of the host. A folder must be named by its own path, not by a link to it (mount_path)",
		file, err)
}

// MeasureFile returns the size and header of the file of a claim, which must be a regular one. libvirtd does not open its path, because
// tenants may replace the file at any time by a FIFO, which would block libvirtd for ever. host.ErrCannotTell is the error of a host that
// can't show it, or whose root may not read it.
func MeasureFile(ctx context.Context, h Folders, path string) (host.Measured, error) {
	is, err := h.File(ctx, path, image.HeadSize)
	return host.Measured{Size: (is.Length + sector - 1) / sector * sector, Head: is.Head}, explain(cmp.Or(err, is.Irregular), path)
}

// CapacityAs is the size in bytes that a guest sees of a volume that was measured as raw.
func CapacityAs(format string, found host.Measured) (int64, error) {
	if format == "raw" {
		return found.Size, nil
	}
	is, err := image.Probe(found.Head)
	return is.Capacity, err
}
