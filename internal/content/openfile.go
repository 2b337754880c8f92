package content

import (
	"context"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// OpenFiles is a host that tells what its QEMU processes have open.
type OpenFiles interface {
	Folders
	Labels(ctx context.Context) ([]string, error)
	Capacity(ctx context.Context, diskXML string) (int64, error)
}

// HasOpen tells whether a running domain, which writes to an image, has the file open that it names now. QEMU goes on with a file that was
// deleted or replaced, and nothing of the domain tells. QEMU's lock does, since it is on the file and not on the name. Where no other process
// may open the file, nothing proves it, and the name is believed. A claim's file that is no regular one any more is an error.
//
// Under SELinux it is not tried: libvirt would give the file another label, and its guest could not write to it any more. A claim's file keeps
// its owner: a link may be in its place by now.
func HasOpen(ctx context.Context, h OpenFiles, i volume.Image) (bool, error) {
	if err := Recheck(ctx, h, []volume.Image{i}); err != nil {
		return false, err
	}
	labels, err := h.Labels(ctx)
	if err != nil || slices.Contains(labels, "selinux") {
		return true, err
	}
	owned := i.Binding != "" && slices.Contains(labels, "dac")
	_, refused := h.Capacity(ctx, domainxml.ReaderXML(i.Name, owned))
	if refused == nil {
		return false, nil // nobody writes to it
	}
	return true, context.Cause(ctx) // the lock was in the way, or something else, which proves nothing
}
