//go:build acc

package volume

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What a device had before is neither in the blank parts of the image nor behind its end. A device that is claimed elsewhere is left alone.
func TestAccVolume_UsedDevice(t *testing.T) {
	l := acctest.Lab(t)
	const size = 16 << 20
	was := bytes.Repeat([]byte{0xff}, size)
	clear(was[:mebiByte])
	clear(was[size-mebiByte:])
	device := acctest.Must(l.AddBlockDevice(t.Context(), size, was))(t)
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
	content := disk(100)

	other, err := os.OpenFile(device.Path, os.O_RDONLY|os.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Claim{Path: device.Path}).fill(t.Context(), bytes.NewReader(content), -1, nil, noDigest); !errors.Is(err, ErrBusy) {
		t.Errorf("error %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := (Claim{Path: device.Path}).fill(t.Context(), bytes.NewReader(content), -1, nil, noDigest); err != nil {
		t.Fatal(err)
	}
	got := acctest.StoredAt(t, device.Path, 0, size)
	if got[:len(content)] != string(content) || !isZero([]byte(got[len(content):])) {
		t.Errorf("equal: %v, blank: %v", got[:len(content)] == string(content), isZero([]byte(got[len(content):])))
	}
	if _, err := (Claim{Path: device.Path}).fill(t.Context(), bytes.NewReader(content), -1, nil, noDigest); !errors.Is(err, ErrFilled) {
		t.Errorf("the second time: %v", err)
	}
	large := make([]byte, size+1)
	large[0] = 1
	if _, err := (Claim{Path: device.Path}).fill(t.Context(), bytes.NewReader(large), size+1, nil, noDigest); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a larger image: %v", err)
	}
}
