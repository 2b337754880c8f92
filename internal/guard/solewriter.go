package guard

import (
	"context"
	"fmt"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// DiskAwaiter is a Looker that tells when its running domains have opened a disk.
type DiskAwaiter interface {
	Looker
	AwaitDevice(ctx context.Context, uuid, target string) error
}

// CheckSoleWriter is ErrInUse if a domain of others runs on the host and writes to an image, too. QEMU's lock does not show whose it is: if it is that
// domain's lock on the present file, the file of the domain with this UUID may be a deleted one. Machines of virtclaim are started only with a
// file that the others have. It returns when all running domains have opened the image, so that a probe of the lock disturbs no start.
func CheckSoleWriter(ctx context.Context, key string, h DiskAwaiter, image volume.Image, uuid string) error {
	users, err := Users(ctx, key, h, image)
	if err != nil {
		return err
	}
	var others []string
	for _, u := range users {
		if !u.Live || u.Depth > 0 || !u.Device.Writes() {
			continue
		}
		_ = h.AwaitDevice(ctx, u.UUID, u.Device.Target) // one that has gone meanwhile has no lock
		if u.UUID != uuid && u.Mark.Phase == "" {
			others = append(others, u.Domain)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: domain %s on host %s writes to %s, too, so that nothing shows which of them has the file that is there now: one may write to "+
		"a deleted one. Stop that domain, or detach the disk there", ErrInUse, strings.Join(others, ", "), key, image.Name)
}
