package virtualmachine

import (
	"context"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// recognize refuses local images that are not the ones that the configuration names: another file may have their path by now.
func (l life) recognize(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		for _, i := range want.Disks[key].Volume.Images {
			if err := content.RecognizeImage(ctx, l.host, i); err != nil {
				return fmt.Errorf("disk %s can't be given to the machine: %w. Run terraform plan, which says what became of the disk", key, err)
			}
		}
	}
	return nil
}
