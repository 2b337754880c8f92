package content

import (
	"context"
	"errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// OpenFiles is a host that tells what its QEMU processes have open.
type OpenFiles interface {
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
	Capacity(ctx context.Context, diskXML string) (int64, error)
	OpenAllocation(ctx context.Context, uuid, target string) (int64, error)
}

// readings is how often a file and what a guest has open must differ in size to be two: both are read one after the other.
const readings = 3

// HasOpen tells whether a running domain, which writes to its device of that target, has the file open that the path names now. QEMU goes on
// with a file that was deleted or replaced, and nothing of the domain tells. QEMU's lock does, since it is on the file and not on the name.
// Where no other process may open the file, as under SELinux, the space that both take tells: equal space proves nothing, and is believed.
func HasOpen(ctx context.Context, h OpenFiles, uuid, target, path string) (bool, error) {
	alone, shared := domainxml.ReaderXML(path, false), domainxml.ReaderXML(path, true)
	if _, err := h.Capacity(ctx, alone); err == nil {
		return false, nil // nobody writes to it
	}
	if _, err := h.Capacity(ctx, shared); err == nil {
		return true, nil // only the lock was in the way
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	for range readings {
		same, err := takesSameSpace(ctx, h, uuid, target, path)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// takesSameSpace tells whether a file has as much space as what a guest has open: no less than before it was asked, and no more than after.
func takesSameSpace(ctx context.Context, h OpenFiles, uuid, target, path string) (bool, error) {
	before, err := h.OpenAllocation(ctx, uuid, target)
	if err != nil {
		return false, err
	}
	v, err := h.VolumeAt(ctx, path)
	if errors.Is(err, host.ErrNotFound) {
		return false, nil
	}
	if errors.Is(err, host.ErrUndescribed) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	after, err := h.OpenAllocation(ctx, uuid, target)
	return min(before, after) <= v.Allocation && v.Allocation <= max(before, after), err
}
