package guard

import (
	"context"
	"fmt"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// CheckSoleWriter is ErrInUse if a domain of others runs on the host and writes to an image, too. QEMU's lock does not show whose it is: with
// that one's on the file that is there, the file of the domain with this UUID may be deleted. Machines of virtclaim only start with a file
// that the others have.
func CheckSoleWriter(ctx context.Context, key string, h Looker, image volume.Image, uuid string) error {
	users, err := Users(ctx, key, h, image)
	if err != nil {
		return err
	}
	var others []string
	for _, u := range users {
		if u.Live && u.Depth == 0 && u.UUID != uuid && u.Mark.Phase == "" && u.Device.Writes() {
			others = append(others, u.Domain)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: domain %s on host %s writes to %s, too, so that nothing shows which of them has the file that is there now: one may write to "+
		"a deleted one. Stop that domain, or detach the disk there", ErrInUse, strings.Join(others, ", "), key, image.Name)
}
