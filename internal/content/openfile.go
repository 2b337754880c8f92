package content

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// OpenFiles is a host that can test which files its QEMU processes have open.
type OpenFiles interface {
	Folders
	Labels(ctx context.Context) ([]string, error)
	Opens(ctx context.Context, diskXML string) error
}

// HasOpen reports whether a running domain that writes to an image has the file open that the image's path names now. QEMU continues with a
// file that was deleted or replaced, and the domain does not show it. QEMU's lock does, because it is on the file and not on the name. It
// does not show its holder: call guard.CheckSoleWriter before. A claim's file that exists but is no regular file is an error, and so is one
// that can't be opened, because the guest can open its own file.
//
// SELinux hosts are not checked: libvirt would relabel the file, and its guest could no longer write to it. There open is assumed, and
// proven is false. The file's owner is not changed: a guest has it open, or a link may have replaced it.
func HasOpen(ctx context.Context, h OpenFiles, i volume.Image) (open, proven bool, err error) {
	if err := Recheck(ctx, h, []volume.Image{i}); err != nil {
		return false, errors.Is(err, host.ErrNotFound), ignoreNotFound(err) // the guest can't have a missing file open
	}
	labels, err := h.Labels(ctx)
	if err != nil || slices.Contains(labels, "selinux") {
		return true, false, err
	}
	keepsOwner := slices.Contains(labels, "dac")
	if refused := h.Opens(ctx, domainxml.ReaderXML(i.Name, false, keepsOwner)); refused == nil {
		return false, true, nil // no process writes to it
	}
	// If this probe opens the file, only the lock can have refused the first one.
	if err = h.Opens(ctx, domainxml.ReaderXML(i.Name, true, keepsOwner)); err != nil {
		return false, false, fmt.Errorf("the host can't open %s, which may have been replaced: %w", i.Name, err)
	}
	return true, true, nil
}
