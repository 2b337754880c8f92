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

// overlayTime is how long a machine waits for the removal of its disk's overlays, which the same apply may be doing.
const overlayTime = 5 * time.Second

// checkMasters refuses disks that the machine would write to while they are masters.
func (m manager) checkMasters(ctx context.Context, uuid string, opened content.Opened, want domainxml.Machine, keys []string) error {
	for _, key := range keys {
		if !writes(want.Disks[key]) {
			continue
		}
		if err := m.awaitNoOverlay(ctx, uuid, topOf(want.Disks[key].Volume), opened); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return nil
}

// writes reports whether the guest writes to an image that may be a master: a disk of a storage pool, or a file or device that is bound
// write-exclusive. Headers never name network storage, and a write-shared image is never a master.
func writes(d domainxml.Disk) bool {
	if len(d.Volume.Images) == 0 || d.ReadOnly || d.Ephemeral || domainxml.IsDrive(d.Device) {
		return false
	}
	top := d.Volume.Images[0]
	return top.IsDisk() && top.AccessMode != volume.ReadShared || top.Binding != "" && top.Type != "network" && top.AccessMode == volume.WriteExclusive
}

// awaitNoOverlay waits until no volume is an overlay of the file; its error names the overlays.
func (m manager) awaitNoOverlay(ctx context.Context, uuid string, of volume.Image, opened content.Opened) error {
	pool := ""
	if seen, err := m.inspect(ctx, []volume.Image{of}); err != nil {
		return err
	} else if seen[0] != nil {
		pool = seen[0].Pool
	}
	found := content.CheckWriter(ctx, m.host, pool, of.Name, opened)
	if !errors.Is(found, content.ErrMaster) {
		return found
	}
	patient, cancel := context.WithTimeout(ctx, overlayTime)
	defer cancel()
	err := m.host.AwaitEvery(patient, time.Second, uuid, func(ctx context.Context) (bool, error) {
		now := content.CheckWriter(ctx, m.host, pool, of.Name, opened)
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
