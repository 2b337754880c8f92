package content

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// notedRaw reports whether the ledger records the file as raw. The entry counts only for a file of a recorded length, because another file
// may have been created under the name since.
func notedRaw(ctx context.Context, h ledger, v host.StorageVolume) (bool, error) {
	lengths, err := notedLengths(ctx, h, v)
	return v.Type == "file" && v.Physical != 0 && slices.Contains(lengths, v.Physical), err
}

// notedLengths are the lengths that the ledger records for a raw file.
func notedLengths(ctx context.Context, h ledger, v host.StorageVolume) (lengths []int64, err error) {
	id, err := h.SecretOfVolume(ctx, ledgerUsage(v.Pool, v.Name))
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	described, err := entryOf(ctx, h, id)
	if text, isRaw := strings.CutPrefix(described, ledgerDescription(v)+rawNote); isRaw {
		for _, part := range strings.Split(text, orNote) {
			var bytes int64
			if _, err := fmt.Sscanf(part, bytesNote, &bytes); err == nil {
				lengths = append(lengths, bytes)
			}
		}
	}
	return lengths, err
}

// notedLength returns the recorded length that a file has which libvirt can't describe; 0 if it has none of them.
func notedLength(ctx context.Context, h interface {
	ledger
	HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error)
}, v host.StorageVolume,
) (int64, error) {
	lengths, err := notedLengths(ctx, h, v)
	for _, bytes := range lengths {
		if has, err := h.HasLength(ctx, v.Pool, v.Name, bytes); has || err != nil {
			return bytes, err
		}
	}
	return 0, err
}

// ErrImageAsRaw is the error of a raw disk whose file is now an image in another format, for example a restored backup: its guest would see the
// image's tables, and write to them.
var ErrImageAsRaw = errors.New("the disk is raw, so the file was replaced by an image, for example by a backup that was restored as one, or it was resized " +
	"by hand and its guest has written that header. It was not changed")

// CheckRaw returns ErrImageAsRaw for a raw file that begins with the header of an image and has none of the lengths in the ledger. A guest
// can write such a header, but it can't change the length.
func CheckRaw(ctx context.Context, h Measured, v host.StorageVolume, i volume.Image) error {
	if i.Format != "raw" || v.Type != "file" {
		return nil
	}
	lengths, err := notedLengths(ctx, h, v)
	if err != nil || len(lengths) == 0 || slices.Contains(lengths, v.Physical) {
		return err
	}
	if v.Physical == 0 { // of a volume that libvirt can't describe
		if bytes, err := notedLength(ctx, h, v); err != nil || bytes > 0 {
			return err
		}
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err != nil {
		return err
	}
	is, refused := image.Probe(head)
	if refused == nil && is.Format == "raw" {
		return nil
	}
	command, err := ledgerCommand(v, i.Format, i.Generation)
	if err != nil {
		return err
	}
	remedy := image.Convert(is.Format, "raw")
	if refused != nil { // qemu-img convert would copy another file into the disk
		remedy = "restore it again, as raw, from the backup. Don't convert this file: its header is that of a format that is refused, or names " +
			"another file, which qemu-img would copy into the disk"
	}
	has := fmt.Sprintf(bytesNote, v.Physical)
	if v.Physical == 0 {
		has = "another length"
	}
	return fmt.Errorf("volume %s in storage pool %s has %s and the header of an image, and was recorded with %s: %w. If it was resized by hand, record "+
		"its length on its host:\n\n  %s\n\nIf it was restored: %s", v.Name, v.Pool, has, listed(lengths), ErrImageAsRaw, command, remedy)
}

// Measured is a host that can determine the length of a file that libvirt can't describe.
type Measured interface {
	Identities
	HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error)
}

func listed(lengths []int64) string {
	var texts []string
	for _, bytes := range lengths {
		texts = append(texts, fmt.Sprintf(bytesNote, bytes))
	}
	return strings.Join(texts, " or ")
}

// The suffix of the description of a raw file: the lengths that it may have.
const rawNote, orNote, bytesNote = ", which is raw and has ", ", or ", "%d bytes"

// formatNote is the suffix of the description of a raw file. A guest can't change the length. A file that is about to grow has one of two lengths
// afterwards, because growing may fail.
func formatNote(v host.StorageVolume, format string, grown ...int64) string {
	if v.Type != "file" || format != "raw" || v.Physical == 0 {
		return ""
	}
	text := rawNote + fmt.Sprintf(bytesNote, v.Physical)
	for _, bytes := range grown {
		text += orNote + fmt.Sprintf(bytesNote, bytes)
	}
	return text
}

// NoteGrowth records the length that a raw file is about to have, before it is resized, and its present length if it was resized manually. A file
// that the ledger does not record as raw is recorded only if its header is not that of an image, which may be an overlay created under the
// name of a deleted raw file, or if a guest has it open as raw, which isProven reports; nil if none runs.
func NoteGrowth(ctx context.Context, h Identities, v host.StorageVolume, i volume.Image, bytes int64, isProven func() bool) error {
	if i.Format != "raw" || v.Type != "file" || v.Physical == 0 {
		return nil
	}
	entry, err := h.SecretOfVolume(ctx, ledgerUsage(v.Pool, v.Name))
	if err != nil || entry != volume.LastingGeneration(i.Generation) {
		return ignoreNotFound(err)
	}
	isRaw, err := notedRaw(ctx, h, v)
	if err != nil || isRaw && v.Physical >= bytes {
		return err
	}
	if !isRaw {
		head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
		if err != nil {
			return err
		}
		is, refused := image.ProbeOverlay(head)
		if isImage := refused != nil || is.Format != "raw"; isImage && (isProven == nil || !isProven()) {
			return nil // it may be an overlay
		}
	}
	if v.Physical >= bytes {
		return note(ctx, h, v, "raw", i.Generation)
	}
	return note(ctx, h, v, "raw", i.Generation, bytes)
}

// NoteRaw records that an imported volume is raw, as configured, although its header is that of an image.
func NoteRaw(ctx context.Context, h Identities, v host.StorageVolume, i volume.Image) error {
	isRaw, err := notedRaw(ctx, h, v)
	if err != nil || isRaw || i.Format != "raw" || v.Type != "file" {
		return err
	}
	return note(ctx, h, v, "raw", i.Generation)
}
