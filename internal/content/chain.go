package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrUnproven is the error of an overlay that no domain opens as one: it may be a raw disk whose guest wrote a header that names any file.
var ErrUnproven = errors.New("no domain opens it as an overlay, and a guest of a raw disk may have written its head. If so, set format = " +
	"\"raw\". If not, set source and copy_mode")

// MastersOf are the images below an overlay that is in no state, as the headers in its chain name them, the lowest one last, and the
// capacity in bytes of the first one. QEMU opens each in the format that the header above says; a guest can't write the header of what is
// opened as qcow2. All must be in storage pools, which tell what is there.
func MastersOf(ctx context.Context, h Host, overlay host.StorageVolume) (masters []volume.Image, capacity int64, err error) {
	shown, err := FormatOf(ctx, h, overlay)
	if err == nil && shown.Domain == "" {
		err = fmt.Errorf("its head names %q, but %w", Shown(overlay.Backing), ErrUnproven)
	}
	var seen *Seen
	if err == nil {
		seen, err = See(ctx, h, overlay, "qcow2")
	}
	for at := overlay; err == nil && at.Backing != ""; {
		path, format := absolute(at.Backing, at.Path), image.BackingFormat(seen.Head)
		if format != "raw" && format != "qcow2" || len(masters) == maxLayers {
			return nil, 0, fmt.Errorf("the head of %s does not say that %q is raw or qcow2", at.Path, Shown(path))
		}
		at, err = h.VolumeAt(ctx, path)
		if err = Described(err, format); errors.Is(err, host.ErrNotFound) {
			err = fmt.Errorf("%q is in no active storage pool: make one of its folder (virsh pool-create-as NAME dir --target FOLDER)",
				Shown(path))
		}
		if err == nil {
			seen, err = See(ctx, h, at, format)
		}
		if err != nil {
			break
		}
		if format == "raw" { // its guest may have written a header
			at.Capacity, at.Backing = cmp.Or(at.Physical, at.Capacity), ""
		}
		if len(masters) == 0 {
			capacity = at.Capacity
		}
		// The ledger's identity may come at any time, by an import of the master.
		masters = append(masters, volume.Image{Format: format, Name: path, Generation: image.Identity(seen.Head)})
	}
	return masters, capacity, err
}
