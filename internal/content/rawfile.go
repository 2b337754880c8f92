package content

import (
	"context"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// notedRaw reports whether the ledger records the file as raw. The record counts only for a file of the recorded length, because another
// file may have been created under the name since.
func notedRaw(ctx context.Context, h ledger, v host.StorageVolume) (bool, error) {
	id, err := h.SecretOfVolume(ctx, ledgerUsage(v.Pool, v.Name))
	if err != nil {
		return false, found(err)
	}
	note := formatNote(v, "raw")
	described, err := entryOf(ctx, h, id)
	return note != "" && described == ledgerDescription(v)+note, err
}

// formatNote is what follows the description of a raw file. Its length is not the guest's to choose.
func formatNote(v host.StorageVolume, format string) string {
	if v.Type != "file" || format != "raw" || v.Physical == 0 {
		return ""
	}
	return fmt.Sprintf(", which is raw and has %d bytes", v.Physical)
}

// NoteGrowth notes how long a raw file is about to be, before it grows: what is interrupted grows with the next apply. What the
// ledger does not have as raw now stays as it is.
func NoteGrowth(ctx context.Context, h Identities, v host.StorageVolume, i volume.Image, bytes int64) error {
	if i.Format != "raw" || v.Physical >= bytes {
		return nil
	}
	entry, err := h.SecretOfVolume(ctx, ledgerUsage(v.Pool, v.Name))
	if err != nil || entry != volume.LastingGeneration(i.Generation) {
		return found(err)
	}
	isRaw, err := notedRaw(ctx, h, v)
	if v.Physical = bytes; err != nil || !isRaw {
		return err
	}
	return note(ctx, h, v, "raw", i.Generation)
}
