package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// MastersOf are the images below an overlay that is in no state, as the headers in its chain name them, the lowest one last, and the
// capacity in bytes of the first one. All must be in storage pools, which tell what is there.
func MastersOf(ctx context.Context, h Host, overlay host.StorageVolume) (masters []volume.Image, capacity int64, err error) {
	for at := overlay; at.Backing != ""; {
		path := absolute(at.Backing, at.Path)
		if len(masters) == maxLayers {
			return nil, 0, fmt.Errorf("there are more than %d images below it", maxLayers)
		}
		if at, err = h.VolumeAt(ctx, path); errors.Is(err, host.ErrNotFound) {
			err = fmt.Errorf("%q is in no active storage pool: make one of its folder (virsh pool-create-as NAME dir --target FOLDER)",
				Shown(path))
		}
		if err != nil {
			return nil, 0, err
		}
		is, err := FormatOf(ctx, h, at)
		if err == nil && is.Refused != nil {
			err = fmt.Errorf("the image %s can't be opened: %w", path, is.Refused)
		}
		if err != nil {
			return nil, 0, err
		}
		seen, err := See(ctx, h, at, is.Name)
		if err != nil {
			return nil, 0, err
		}
		if len(masters) == 0 {
			capacity = at.Capacity
		}
		if is.Name == "raw" {
			at.Backing = "" // its guest may have written a header with one
		}
		// The ledger's identity may come at any time, by an import of the master.
		masters = append(masters, volume.Image{Format: is.Name, Name: path, Generation: image.Identity(seen.Head)})
	}
	return masters, capacity, nil
}
