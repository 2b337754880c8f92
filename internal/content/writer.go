package content

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// ErrMaster is the error of writing to an image that has overlays.
var ErrMaster = errors.New("it is a master, and so read-only")

// CheckWriter is ErrMaster for the file of an image to which a machine is about to write while volumes of the host are overlays of it,
// whether a machine has those or not. Nothing else marks a master: it can be written to again when its overlays are deleted. pool is the
// file's storage pool, which may be empty, and opened are the images of the host's domains.
func CheckWriter(ctx context.Context, h interface {
	Locator
	KnownOverlays(ctx context.Context, pool string) ([]host.StorageVolume, error)
}, pool, path string, opened Opened,
) error {
	known, err := h.KnownOverlays(ctx, pool)
	if err != nil {
		return err
	}
	found, err := (&master{host: h, path: path}).overlays(ctx, h, known, opened, provesAll)
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w: these volumes are overlays of %s: %s. Give the machine an overlay or a clone of its own. To commit a "+
		"snapshot's overlay twice would put older data over newer. "+guide.See+"troubleshooting#volumes-over-a-master",
		ErrMaster, path, strings.Join(namesOf(found), ", "))
}

// provesAll has any domain that has a volume as raw prove that its guest has written the header, which must not stop other starts.
func provesAll(openedImage) bool { return true }

// OverlaysOf lists the volumes of the host, as <pool>/<volume>, that are overlays of the file of that path, whether a machine has them or
// not. An inactive pool is an error.
func OverlaysOf(ctx context.Context, h interface {
	Locator
	Overlays(ctx context.Context) ([]host.StorageVolume, error)
	guard.Looker
}, path string,
) (names []string, err error) {
	volumes, err := h.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := openedOn(ctx, h)
	if err != nil {
		return nil, err
	}
	over, err := (&master{host: h, path: path}).overlays(ctx, h, volumes, opened, provesAll)
	return namesOf(over), err
}

func namesOf(volumes []host.StorageVolume) (names []string) {
	for _, v := range volumes {
		names = append(names, v.Pool+"/"+v.Name)
	}
	return names
}
