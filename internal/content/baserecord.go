package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A shared image is read-only once it is finished. Its length and modification time are recorded in a libvirt secret without a value, so that
// changes are detected: virsh blockcommit without --base writes one guest's data into the image below all other disks.

func baseUsage(pool, name string) string { return "virtclaim base " + pool + "/" + name }

func describeBase(v host.StorageVolume) string {
	return fmt.Sprintf("the image %s in the storage pool %s, which disks share: %d bytes, modified at %s", v.Name, v.Pool, v.Physical, v.Modified)
}

// checkUnchanged refuses a shared image that was written to since the first disk over it was created, which adds the record.
func checkUnchanged(ctx context.Context, h Identities, base host.StorageVolume) error {
	usage := baseUsage(base.Pool, base.Name)
	noted, id, err := recordOf(ctx, h, usage)
	switch {
	case err != nil:
		return err
	case id == "":
		return addRecord(ctx, h, usage, describeBase(base))
	case noted == "" || noted == describeBase(base):
		return nil
	}
	return fmt.Errorf("the image %s in the storage pool %s was written to since it was downloaded, as by virsh blockcommit without --base. A new disk over it "+
		"would have what another guest has written, and those that are over it are a mix of two disks. It was noted as %q, and is %q now. Remove "+
		"all disks over it, and the next one downloads it anew. If only the file was copied, as with its pool, remove the note: virsh secret-undefine %s",
		base.Name, base.Pool, noted, describeBase(base), id)
}

// checkBase is checkUnchanged for an image of a chain, if it is a shared one.
func checkBase(ctx context.Context, h Locator, i volume.Image) error {
	if !IsBase(i.Name) {
		return nil
	}
	base, err := h.VolumeAt(ctx, i.Name)
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrUndescribed) {
		return nil
	}
	if err != nil {
		return err
	}
	return checkUnchanged(ctx, h, base)
}

// forgetBase removes the record of a shared image that is about to be deleted or created.
func forgetBase(ctx context.Context, h Identities, pool, name string) error {
	return dropRecord(ctx, h, baseUsage(pool, name))
}
