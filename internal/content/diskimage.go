package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// alignment is what the size of a disk.img is a multiple of, as KubeVirt's are, so that every sector size fits.
const alignment = 1 << 20

// folderTime is what storage gets to show what is in a folder.
const folderTime = 30 * time.Second

// ErrNotRegular is the error of a path where no regular file is.
var ErrNotRegular = errors.New("there is no regular file: it is missing, or it is a symbolic link, a FIFO, a device or a folder")

// Folders is what MakeDiskImage and CheckRegular need of a host.
type Folders interface {
	InFolder(ctx context.Context, path string, use func(ctx context.Context, pool string) error) error
	Volume(ctx context.Context, pool, name string) (host.StorageVolume, error)
	CreateVolume(ctx context.Context, pool string, xml libvirtxml.StorageVolume, preallocate bool) error
}

// MakeDiskImage makes the raw, sparse file of that path, at most capacity bytes large. A regular file that is there already
// is left alone; a symbolic link is ErrNotRegular, and what it leads to is left alone, too.
func MakeDiskImage(ctx context.Context, h Folders, file string, capacity int64) error {
	if capacity < alignment {
		return fmt.Errorf("%s can't be made: the claim has less than 1 MiB", file)
	}
	name := path.Base(file)
	return h.InFolder(ctx, path.Dir(file), func(ctx context.Context, pool string) error {
		err := regular(ctx, h, pool, name)
		if !errors.Is(err, host.ErrNotFound) {
			return err
		}
		err = h.CreateVolume(ctx, pool, libvirtxml.StorageVolume{
			Name:       name,
			Capacity:   &libvirtxml.StorageVolumeSize{Value: uint64(capacity - capacity%alignment), Unit: "bytes"},
			Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
			Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
		}, false)
		if errors.Is(err, host.ErrExists) {
			err = notListed(regular(ctx, h, pool, name), file) // somebody was faster, or it is no regular file
		}
		if err != nil {
			err = fmt.Errorf("%s can't be made. A symbolic link or FIFO of that name is never replaced or followed: look there with ls -l: %w", file, err)
		}
		return err
	})
}

// CheckRegular refuses images of a binding that are files of the host, unless they are regular files there: whoever can write to
// their folder, such as a pod that mounts the claim, could put a symbolic link to any file of the host in their place, which
// libvirt and QEMU follow.
func CheckRegular(ctx context.Context, h Folders, images []volume.Image) error {
	for _, i := range images {
		if i.Type != "file" || i.Binding == "" {
			continue
		}
		if err := checkRegular(ctx, h, i.Name); err != nil {
			return err
		}
	}
	return nil
}

// Recheck is CheckRegular for what was bound already: where the host can't tell, the binding has warned.
func Recheck(ctx context.Context, h Folders, images []volume.Image) error {
	err := CheckRegular(ctx, h, images)
	if errors.Is(err, host.ErrFollowsLinks) {
		return nil
	}
	return err
}

func checkRegular(ctx context.Context, h Folders, file string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, folderTime, fmt.Errorf("no answer within %s", folderTime))
	defer cancel()
	return h.InFolder(ctx, path.Dir(file), func(ctx context.Context, pool string) error {
		return notListed(regular(ctx, h, pool, path.Base(file)), file)
	})
}

// regular is host.ErrNotFound where a pool of a folder does not list the file, as it does links, FIFOs and character devices.
func regular(ctx context.Context, h Folders, pool, name string) error {
	v, err := h.Volume(ctx, pool, name)
	if err == nil && v.Type != "file" {
		return ErrNotRegular
	}
	return err
}

// notListed says of a file that is not listed what that means.
func notListed(err error, file string) error {
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, ErrNotRegular) {
		return fmt.Errorf("%s: %w. Look there with ls -l, and put the image itself in its place: whoever writes to its folder can put "+
			"a link there that leads to any file of the host", file, ErrNotRegular)
	}
	return err
}
