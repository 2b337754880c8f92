package content

import (
	"cmp"
	"context"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// MeasureFile returns the size and header of the file of a claim, which must be a regular one. libvirtd does not open its path, because tenants may
// replace the file at any time by a FIFO, which would block libvirtd for ever. host.ErrCannotTell is the error of a host that can't show it, or
// whose root may not read it.
func MeasureFile(ctx context.Context, h Folders, path string) (host.Measured, error) {
	is, err := h.File(ctx, path, image.HeadSize)
	return host.Measured{Size: (is.Length + sector - 1) / sector * sector, Head: is.Head}, explain(cmp.Or(err, is.Irregular), path)
}

// CapacityAs is the size in bytes that a guest sees of a volume that was measured as raw.
func CapacityAs(format string, found host.Measured) (int64, error) {
	if format == "raw" {
		return found.Size, nil
	}
	is, err := image.Probe(found.Head)
	return is.Capacity, err
}
