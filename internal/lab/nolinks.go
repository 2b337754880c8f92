package lab

import (
	"context"
	"fmt"
)

// RefuseLinks mounts a folder of the host onto itself with the option nosymfollow, as an administrator would mount a claim's volume. undo
// unmounts it.
func (h *Host) RefuseLinks(ctx context.Context, folder string) (undo func(context.Context) error, err error) {
	at := quote(folder)
	undo = func(ctx context.Context) error { return h.sandbox.run(ctx, "! mountpoint -q "+at+" || umount "+at) }
	return undo, h.sandbox.run(ctx, fmt.Sprintf("mount --bind %[1]s %[1]s && mount -o remount,bind,nosymfollow %[1]s", at))
}
