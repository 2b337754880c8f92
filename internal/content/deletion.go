package content

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// The deletion of a disk over a shared image is recorded in a libvirt secret without a value until the image is deleted, too. If the deletion is
// interrupted, the next refresh continues it. Without the record, a disk that is gone may only be somewhere else, and keeps its image.

func deletionUsage(pool, name string) string { return "virtclaim deletes " + pool + "/" + name }

// NoteDeletion records that a volume is about to be deleted.
func NoteDeletion(ctx context.Context, h Identities, pool, name string) error {
	if noted, err := IsDeleted(ctx, h, pool, name); noted || err != nil {
		return err
	}
	s := libvirtxml.Secret{
		UUID: uuid.NewString(), Private: "yes", Ephemeral: "no",
		Description: fmt.Sprintf("the volume %s in the storage pool %s is being deleted", name, pool),
		Usage:       &libvirtxml.SecretUsage{Type: "volume", Volume: deletionUsage(pool, name)},
	}
	text, err := s.Marshal()
	if err != nil {
		return fmt.Errorf("describe the deletion of the volume %s: %w", name, err)
	}
	return h.DefineSecret(ctx, text)
}

// IsDeleted reports whether the deletion of a volume is recorded.
func IsDeleted(ctx context.Context, h Identities, pool, name string) (bool, error) {
	_, err := h.SecretOfVolume(ctx, deletionUsage(pool, name))
	return err == nil, found(err)
}

// ForgetDeletion removes the record.
func ForgetDeletion(ctx context.Context, h Identities, pool, name string) error {
	id, err := h.SecretOfVolume(ctx, deletionUsage(pool, name))
	if err == nil {
		err = h.UndefineSecret(ctx, id)
	}
	return found(err)
}
