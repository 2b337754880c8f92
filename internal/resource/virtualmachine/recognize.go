package virtualmachine

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// volumes is what tells whether the files that a machine is to open are those that were made for it.
type volumes interface {
	content.Identities
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
}

// recognize refuses local images that are not the ones that the configuration names: another file may have their path by now. What is
// in no storage pool of the host has no identity.
func (l life) recognize(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		for _, i := range want.Disks[key].Volume.Images {
			if err := l.recognizeImage(ctx, i); err != nil {
				return fmt.Errorf("disk %s can't be given to the machine: %w. Run terraform plan, which says what became of the disk", key, err)
			}
		}
	}
	return nil
}

func (l life) recognizeImage(ctx context.Context, i volume.Image) error {
	if i.Type != "file" || i.Generation == "" {
		return nil
	}
	v, err := l.host.VolumeAt(ctx, i.Name)
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return content.Recognize(ctx, l.host, v, i.Format, i.Generation)
}
