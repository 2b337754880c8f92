package content

import (
	"context"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The deletion of a disk over a shared image is recorded in a libvirt secret without a value until the image is deleted, too. If the deletion is
// interrupted, the next refresh continues it. Without the record, a missing disk may only have been moved, and keeps its image. The
// record has the identity of the volume, so that it does not apply to another one of that name. If the volume still exists, the record is removed.

func deletionUsage(pool, id string) string {
	return "virtclaim deletes " + pool + "/" + volume.LastingGeneration(id)
}

// NoteDeletion records that a volume of that identity is about to be deleted.
func NoteDeletion(ctx context.Context, h Identities, pool, name, id string) error {
	if noted, err := IsDeleted(ctx, h, pool, id); noted || err != nil || id == "" {
		return err
	}
	return addRecord(ctx, h, deletionUsage(pool, id), fmt.Sprintf("the volume %s in the storage pool %s is being deleted", name, pool))
}

// IsDeleted reports whether the deletion of a volume of that identity is recorded.
func IsDeleted(ctx context.Context, h Identities, pool, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	_, err := h.SecretOfVolume(ctx, deletionUsage(pool, id))
	return err == nil, ignoreNotFound(err)
}

// ForgetDeletion removes the record of a deletion.
func ForgetDeletion(ctx context.Context, h Identities, pool, id string) error {
	if id == "" {
		return nil
	}
	return dropRecord(ctx, h, deletionUsage(pool, id))
}
