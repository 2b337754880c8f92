package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// overlayTime is how long a machine waits for overlays of its disk to go, which the same apply may be removing.
const overlayTime = 5 * time.Second

// checkMasters refuses disks that the machine would write to while they are masters.
func (l life) checkMasters(ctx context.Context, uuid string, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		if !writes(want.Disks[key]) {
			continue
		}
		if err := l.awaitNoOverlay(ctx, uuid, want.Disks[key].Volume.Images[0].Name); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}

// writes tells whether a guest writes to a disk of a storage pool. A claim's storage has a mode that says who may.
func writes(d domainxml.Disk) bool {
	return len(d.Volume.Images) > 0 && d.Volume.Images[0].IsDisk() && d.Volume.Images[0].AccessMode != volume.ReadShared &&
		!d.ReadOnly && !d.Ephemeral && !domainxml.IsDrive(d.Device)
}

// awaitNoOverlay returns when no volume is an overlay of a file, or else says which are.
func (l life) awaitNoOverlay(ctx context.Context, uuid, path string) error {
	found := content.CheckWriter(ctx, l.host, path)
	if !errors.Is(found, content.ErrMaster) {
		return found
	}
	patient, cancel := context.WithTimeout(ctx, overlayTime)
	defer cancel()
	err := l.host.AwaitEvery(patient, time.Second, uuid, func(ctx context.Context) (bool, error) {
		now := content.CheckWriter(ctx, l.host, path)
		if ctx.Err() == nil {
			found = now
		}
		return !errors.Is(now, content.ErrMaster), nil
	})
	if err != nil && patient.Err() == nil {
		return err
	}
	return found
}
