package guard

import (
	"context"
	"fmt"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// DiskAwaiter is a Looker that can wait until a running domain has opened a disk.
type DiskAwaiter interface {
	Looker
	AwaitDevice(ctx context.Context, uuid, target string) error
}

// CheckSoleWriter is ErrInUse if an unmanaged domain runs on the host and also writes to an image. QEMU's lock does not show its holder: if
// that domain holds the lock on the present file, the domain with this UUID may have a deleted file open. Managed machines are only started
// with the file that other machines have. It returns when all running domains have opened the image, so that probing the lock disturbs no
// start.
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
		_ = h.AwaitDevice(ctx, u.UUID, u.Device.Target) // a domain that has ended meanwhile holds no lock
		if u.UUID != uuid && u.Metadata.Phase == "" {
			others = append(others, u.Domain)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: domain %s on host %s writes to %s, too, so that nothing shows which of them has the file that is there now: "+
		"one may write to a deleted one. Stop that domain, or detach the disk there", ErrInUse, strings.Join(others, ", "), key, image.Name)
}
