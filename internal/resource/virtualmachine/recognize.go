package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// recognize refuses local images that are not the configured ones: another file may have the path by now, or an overlay may have another
// backing file.
func (m manager) recognize(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		if err := content.RecognizeChain(ctx, m.host, want.Disks[key].Volume.Images); err != nil {
			return fmt.Errorf("disk %s can't be given to the machine (terraform plan says what became of the disk): %w", key, err)
		}
	}
	return nil
}

// checkBacking refuses to define chains that contradict the headers of their overlays. It is called before anything changes.
func (m manager) checkBacking(ctx context.Context, want domainxml.Machine) error {
	for _, key := range slices.Sorted(maps.Keys(want.Disks)) {
		if err := content.CheckBacking(ctx, m.host, want.Disks[key].Volume.Images); err != nil {
			return fmt.Errorf("%w: disk %s: %w", errExternal, key, err)
		}
	}
	return nil
}

// engrave writes the identity of imported disks, which only the host's ledger has, into their headers. No other machine has them open now.
func (m manager) engrave(ctx context.Context, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		top := topOf(want.Disks[key].Volume)
		if top.AccessMode != volume.WriteExclusive || !top.IsDisk() {
			continue
		}
		if err := content.Engrave(ctx, m.host, top); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}
