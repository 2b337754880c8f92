package content

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A raw file has no room for an identity, and its guest can write any header, but not change its length: the ledger has that, too. A file
// of another length is another one, such as a backup that was restored as an image. See docs/decisions/0028.

// ErrOtherLength is the error of a raw disk whose file has another length than the ledger says.
var ErrOtherLength = errors.New("it is not known as the disk: the length of a raw disk's file is recorded on its host")

// isRaw reports whether the ledger records a file as raw.
func (e entry) isRaw(ctx context.Context, h Identities, v host.StorageVolume) (bool, error) {
	if v.Type != "file" {
		return false, nil
	}
	for _, bytes := range e.lengths {
		if v.Physical != 0 && v.Physical == bytes {
			return true, nil
		}
		if v.Physical == 0 { // libvirt can't describe it
			if has, err := h.HasLength(ctx, v.Pool, v.Name, bytes); has || err != nil {
				return has, err
			}
		}
	}
	return false, nil
}

// checkLength returns ErrOtherLength for a raw file that has none of the lengths.
func (e entry) checkLength(ctx context.Context, h Identities, v host.StorageVolume) (other, err error) {
	if v.Type != "file" || len(e.lengths) == 0 {
		return nil, nil
	}
	is, err := e.isRaw(ctx, h, v)
	if err != nil || is {
		return nil, ignoreNotFound(err)
	}
	has := "another length"
	if v.Physical != 0 {
		has = fmt.Sprintf(bytesNote, v.Physical)
	}
	command, err := ledgerCommand(v, "raw", e.id)
	return fmt.Errorf("volume %s in storage pool %s has %s, and was recorded with %s: %w. It was not changed. If a backup was restored "+
		"as an image, or cut off, restore it as raw, with the recorded length. If the disk was resized by hand, record its length on the "+
		"host:\n\n  %s", v.Name, v.Pool, has, listed(e.lengths),
		ErrOtherLength, command), err
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

// formatNote is the suffix of the description of a raw file. A file that is about to grow has one of two lengths afterwards, because
// growing may fail.
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

// rawLengths are the lengths in such a suffix.
func rawLengths(suffix string) (lengths []int64) {
	text, _ := strings.CutPrefix(suffix, rawNote)
	for part := range strings.SplitSeq(text, orNote) {
		var bytes int64
		if _, err := fmt.Sscanf(part, bytesNote, &bytes); err == nil {
			lengths = append(lengths, bytes)
		}
	}
	return lengths
}

// NoteGrowth records the length that a raw file is about to have, before it is resized.
func NoteGrowth(ctx context.Context, h Identities, v host.StorageVolume, i volume.Image, bytes int64) error {
	if i.Format != "raw" || v.Type != "file" || v.Physical == 0 || v.Physical >= bytes {
		return nil
	}
	is, err := noted(ctx, h, v)
	if err != nil || is.id != volume.LastingGeneration(i.Generation) || !slices.Contains(is.lengths, v.Physical) {
		return err
	}
	return note(ctx, h, v, "raw", i.Generation, bytes)
}

// NoteRaw records that an imported volume is raw, as configured, although its header is that of an image.
func NoteRaw(ctx context.Context, h Identities, v host.StorageVolume, i volume.Image) error {
	if i.Format != "raw" || v.Type != "file" {
		return nil
	}
	is, err := noted(ctx, h, v)
	if err != nil || slices.Contains(is.lengths, v.Physical) {
		return err
	}
	return note(ctx, h, v, "raw", i.Generation)
}
