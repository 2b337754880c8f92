package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
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
	id, err := h.SecretOfVolume(ctx, usage)
	if errors.Is(err, host.ErrNotFound) {
		return noteBase(ctx, h, base, usage)
	}
	if err != nil {
		return err
	}
	noted, err := entryOf(ctx, h, id)
	if err != nil || noted == "" || noted == describeBase(base) {
		return err
	}
	return fmt.Errorf("the image %s in the storage pool %s was written to since it was downloaded, as by virsh blockcommit without --base. A disk over it "+
		"would have what another guest has written, and the other disks over it can't be trusted any more. It was noted as %q, and is %q now. Remove "+
		"all disks over it, and the next one downloads it anew. If only the file was copied, as with its pool, remove the note: virsh secret-undefine %s",
		base.Name, base.Pool, noted, describeBase(base), id)
}

func noteBase(ctx context.Context, h Identities, base host.StorageVolume, usage string) error {
	s := libvirtxml.Secret{
		UUID: uuid.NewString(), Private: "yes", Ephemeral: "no", Description: describeBase(base),
		Usage: &libvirtxml.SecretUsage{Type: "volume", Volume: usage},
	}
	text, err := s.Marshal()
	if err != nil {
		return fmt.Errorf("describe the secret of the image %s: %w", base.Name, err)
	}
	return h.DefineSecret(ctx, text)
}

// forgetBase removes the record of a shared image that is about to be deleted or created.
func forgetBase(ctx context.Context, h Identities, pool, name string) error {
	id, err := h.SecretOfVolume(ctx, baseUsage(pool, name))
	if err == nil {
		err = h.UndefineSecret(ctx, id)
	}
	return found(err)
}
