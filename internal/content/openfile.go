package content

import (
	"context"
	"errors"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// OpenFiles is a host that tells what its QEMU processes have open.
type OpenFiles interface {
	Folders
	Labels(ctx context.Context) ([]string, error)
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
	Capacity(ctx context.Context, diskXML string) (int64, error)
	OpenAllocation(ctx context.Context, uuid, target string) (int64, error)
}

// readings is how often a file and what a guest has open must differ in size to be two: both are read one after the other.
const readings = 3

// HasOpen tells whether a running domain, which writes to its device of that target, has the file open that an image names now. QEMU goes on
// with a file that was deleted or replaced, and nothing of the domain tells. QEMU's lock does, since it is on the file and not on the name.
// Where no other process may open the file, the space that both take tells: equal space proves nothing, and is believed. A claim's file that
// is no regular one any more is an error.
func HasOpen(ctx context.Context, h OpenFiles, uuid, target string, i volume.Image) (bool, error) {
	if err := Recheck(ctx, h, []volume.Image{i}); err != nil {
		return false, err
	}
	switch has, told, err := hasLock(ctx, h, i); {
	case err != nil:
		return false, err
	case told:
		return has, nil
	}
	for range readings {
		same, err := takesSameSpace(ctx, h, uuid, target, i.Name)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// hasLock tells whether a QEMU writes to the file of an image, if that can be told. Under SELinux libvirt would give the file another label, and
// its guest could not write to it any more. One of a claim keeps its owner: a link may be in its place by now.
func hasLock(ctx context.Context, h OpenFiles, i volume.Image) (has, told bool, err error) {
	labels, err := h.Labels(ctx)
	if err != nil || slices.Contains(labels, "selinux") {
		return false, false, err
	}
	owned := i.Binding != "" && slices.Contains(labels, "dac")
	if _, refused := h.Capacity(ctx, domainxml.ReaderXML(i.Name, false, owned)); refused == nil {
		return false, true, nil // nobody writes to it
	}
	_, refused := h.Capacity(ctx, domainxml.ReaderXML(i.Name, true, owned))
	return true, refused == nil, context.Cause(ctx) // if it can be opened so, only the lock was in the way
}

// takesSameSpace tells whether a file has as much space as what a guest has open: no less than before it was asked, and no more than after.
func takesSameSpace(ctx context.Context, h OpenFiles, uuid, target, path string) (bool, error) {
	before, err := h.OpenAllocation(ctx, uuid, target)
	if err != nil {
		return false, err
	}
	v, err := h.VolumeAt(ctx, path)
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrUndescribed) {
		return true, nil // its space is not known
	}
	if err != nil {
		return false, err
	}
	after, err := h.OpenAllocation(ctx, uuid, target)
	return min(before, after) <= v.Allocation && v.Allocation <= max(before, after), err
}
