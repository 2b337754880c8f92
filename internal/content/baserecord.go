package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A shared image is read-only once it is finished. Its length and modification time are recorded in a libvirt secret without a value, so
// that changes are detected: virsh blockcommit without --base writes one guest's data into the image below all other disks.

func baseUsage(pool, name string) string { return "virtclaim base " + pool + "/" + name }

func describeBase(v host.StorageVolume) string {
	return fmt.Sprintf("the image %s in the storage pool %s, which disks share: %d bytes, modified at %s", v.Name, v.Pool, v.Physical,
		v.Modified)
}

// checkUnchanged refuses a shared image that was written to since the first disk over it was created, which adds the record. id is the UUID
// of the record; empty without one.
func checkUnchanged(ctx context.Context, h Identities, base host.StorageVolume, id string) (err error) {
	was, now := "", describeBase(base)
	if id != "" {
		was, err = descriptionOf(ctx, h, id)
	}
	switch {
	case err != nil || isSameFile(was, now):
		return err
	case was == "":
		return addRecord(ctx, h, baseUsage(base.Pool, base.Name), now)
	}
	return fmt.Errorf("the image %s in the storage pool %s, which disks share, was written to since it was downloaded. Restore it with "+
		"its time (cp -p), or remove all disks over it: the next one downloads it again. If only the file was copied: virsh "+
		"secret-undefine %s\n\nRecorded was %q, and it is %q now",
		base.Name, base.Pool, id, was, now)
}

// checkBase returns ErrMasterChanged if an image of a chain is a shared image and was written to. record has a missing record added.
func checkBase(ctx context.Context, h Locator, i volume.Image, record bool) error {
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
	was, id, err := baseRecord(ctx, h, base, record)
	if err != nil || id == "" {
		return err
	}
	return fmt.Errorf("the shared image %s in the storage pool %s: %w. Recorded was %q, and it is %q now. If machines run over it, do "+
		"not stop them before their data is saved. Restore the image with its time (cp -p). If only the file was copied, as with its "+
		"pool, remove the record: virsh secret-undefine %s",
		base.Name, base.Pool, ErrMasterChanged, was, describeBase(base), id)
}

// baseRecord is the record of a shared image that differs from its file, and its UUID; both are empty if they agree.
func baseRecord(ctx context.Context, h Identities, base host.StorageVolume, record bool) (was, id string, err error) {
	usage := baseUsage(base.Pool, base.Name)
	was, id, err = recordOf(ctx, h, usage)
	if err == nil && id == "" && record {
		err = addRecord(ctx, h, usage, describeBase(base))
	}
	if err != nil || was == "" || isSameFile(was, describeBase(base)) {
		return "", "", err
	}
	return was, id, nil
}

// forgetBase removes the record of a shared image that is about to be deleted.
func forgetBase(ctx context.Context, h Identities, pool, name string) error {
	return dropRecord(ctx, h, baseUsage(pool, name))
}
