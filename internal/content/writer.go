package content

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrMaster is the error of writing to an image that has overlays.
var ErrMaster = errors.New("it is a master, and so read-only")

// overlaid is a host that lists the overlays of an image.
type overlaid interface {
	witness
	Files
}

// CheckWriter is ErrMaster for the file of an image to which a machine is about to write while volumes of the host are overlays of it,
// whether a machine has those or not. Nothing else marks a master: it can be written to again when its overlays are deleted.
func CheckWriter(ctx context.Context, h interface {
	overlaid
	KnownOverlays(ctx context.Context, of string) ([]host.StorageVolume, error)
}, path string,
) error {
	known, err := h.KnownOverlays(ctx, path)
	if err != nil {
		return err
	}
	names, err := overlaysAmong(ctx, h, path, known)
	if err != nil || len(names) == 0 {
		return err
	}
	stale, err := staleAmong(ctx, h, path, known)
	if err != nil {
		return err
	}
	hint := ""
	if len(stale) > 0 {
		hint = fmt.Sprintf(". The disk was written to after %s, as after virsh blockcommit: then that is stale, and to commit it would put older data over newer. Move "+
			"it out of the storage pool, and keep it until the machine has proven to have all", strings.Join(stale, ", "))
	}
	return fmt.Errorf("%w: these volumes are overlays of %s: %s%s. Give the machine an overlay or a clone of its own (virtclaim_disk with a "+
		"copy_mode), or remove those volumes, if they are overlays and have nothing that is still needed. The overlay of an external snapshot has all that was "+
		"written since, unless that was committed. A guest may have written such a header to a raw disk, which is ignored while a machine has that disk",
		ErrMaster, path, strings.Join(names, ", "), hint)
}

// staleAmong are the volumes whose headers name a file that was written to after them. A volume with an identity is a disk of virtclaim's, and not
// the overlay of a snapshot.
func staleAmong(ctx context.Context, h overlaid, path string, volumes []host.StorageVolume) (names []string, err error) {
	is, err := h.VolumeAt(ctx, path)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	for _, v := range volumes {
		if absolute(v.Backing, v.Path) != path || !isBefore(v.Modified, is.Modified) {
			continue
		}
		head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
		if err != nil {
			return nil, err
		}
		ledger, err := noted(ctx, h, v)
		if err != nil {
			return nil, err
		}
		if image.Identity(head) == "" && ledger == "" {
			names = append(names, v.Pool+"/"+v.Name)
		}
	}
	return names, nil
}

// isBefore compares times in libvirt's format, in seconds.
func isBefore(a, b string) bool {
	was, err := strconv.ParseFloat(a, 64)
	is, failed := strconv.ParseFloat(b, 64)
	return err == nil && failed == nil && was < is
}

// OverlaysOf lists the volumes of the host, as <pool>/<volume>, that are overlays of the file of that path, whether a machine has them or not,
// and such disks of unmanaged domains outside of all pools. An inactive pool is an error.
func OverlaysOf(ctx context.Context, h interface {
	overlaid
	Overlays(ctx context.Context) ([]host.StorageVolume, error)
}, path string,
) (names []string, err error) {
	volumes, err := h.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	return overlaysAmong(ctx, h, path, volumes)
}

func overlaysAmong(ctx context.Context, h overlaid, path string, volumes []host.StorageVolume) (names []string, err error) {
	overlays, err := trueOverlays(ctx, h, volumes, newMasterFile(h, path), func(volume.Image) bool { return true }) // a header that a guest has written must not stop other starts
	if err != nil {
		return nil, err
	}
	for _, o := range overlays {
		names = append(names, o.Pool+"/"+o.Name)
	}
	_, above, err := strangers(ctx, h, path)
	return append(names, above...), err
}
