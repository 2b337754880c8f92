package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A volume is known by an identity, which is its generation, and not by its name, under which another volume can be created. A qcow2
// image has the identity in its header. For other formats, which have no room for one, the host keeps a ledger: for each volume a
// libvirt secret without a value, whose UUID is the identity. See decision 0018.

// ErrReplaced is the error of a volume that is gone while another one has its name. It is host.ErrNotFound.
var ErrReplaced = fmt.Errorf("%w: another volume has its name now", host.ErrNotFound)

// ErrUnrecognized is the error of a volume that has lost its identity.
var ErrUnrecognized = errors.New("the volume can't be recognized: it does not have the identity that the state knows, as after a " +
	"conversion, or when another file was created under its name. It was not changed. If it is another volume, move it to another folder, or delete it if it is not needed")

// ErrDataFile is the error of a qcow2 image whose header references an external data file, which QEMU would open, whatever file it is.
// Neither virtclaim nor the guest of a qcow2 disk writes such a reference: another machine had the image attached as raw.
var ErrDataFile = errors.New("its header references an external data file, which it did not when it was created or imported. Something that opened it " +
	"as raw has written that header; with it, the guest could read and write any file of the host. Restore the disk from a backup, or replace it")

// Identities are the calls of a host that are needed to identify volumes.
type Identities interface {
	ledger
	VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error)
	WriteVolumeHead(ctx context.Context, pool, name string, head []byte) error
	DefineSecret(ctx context.Context, xml string) error
	UndefineSecret(ctx context.Context, uuid string) error
}

// Recognize returns nil for the volume that was created with that identity, ErrReplaced for another one of its name, and ErrUnrecognized if
// neither header nor ledger has an identity. format is the one that it is opened in, not that of its header, which a guest can write. The
// identity of a volume of an earlier version is recorded if it has not been yet.
func Recognize(ctx context.Context, h Identities, v host.StorageVolume, format, id string) error {
	has, err := Identity(ctx, h, v, format)
	switch {
	case err != nil || has != "" && id != "" && volume.LastingGeneration(has) == volume.LastingGeneration(id):
		return err
	case has != "" && id != "":
		return fmt.Errorf("volume %s in storage pool %s: %w (identity %q instead of %q)", v.Name, v.Pool, ErrReplaced, has, id)
	case has == "" && (id == "" || id != volume.LastingGeneration(id)):
		return note(ctx, h, v, format, id)
	}
	command, err := ledgerCommand(v, format, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("volume %s in storage pool %s: %w. If it is the right one, restore its identity on its host (not if it has a new content and is a "+
		"master: over another content its overlays are a mix of two disks):\n\n  %s", v.Name, v.Pool, ErrUnrecognized, command)
}

// Described returns err, or nil for host.ErrUndescribed of a volume that is opened as raw: its header has no meaning then.
func Described(err error, format string) error {
	if format == "raw" && errors.Is(err, host.ErrUndescribed) {
		return nil
	}
	return err
}

// Locator finds volumes by the path that machines open.
type Locator interface {
	Measured
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
}

// RecognizeImage is Recognize for a local image of this host that is about to be opened. An image without an identity, or outside of
// all storage pools of the host, is not checked here.
func RecognizeImage(ctx context.Context, h Locator, i volume.Image) error {
	if i.Type != "file" || i.Generation == "" {
		return nil
	}
	v, err := h.VolumeAt(ctx, i.Name)
	if err = Described(err, i.Format); err != nil {
		return ignoreNotFound(err)
	}
	if err := Recognize(ctx, h, v, i.Format, i.Generation); err != nil {
		return err
	}
	if !hasHeader(v, i.Format) {
		return CheckRaw(ctx, h, v, i)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err == nil && image.HasDataFile(head) {
		err = fmt.Errorf("volume %s in storage pool %s: %w", v.Name, v.Pool, ErrDataFile)
	}
	return err
}

// IsGone reports whether a local image of this host, which a machine has open, is no longer in a storage pool, or was replaced by another
// volume at its path: then the machine's QEMU may have the only copy.
func IsGone(ctx context.Context, h Locator, i volume.Image) (bool, error) {
	if i.Type != "file" || i.Generation == "" {
		return false, nil
	}
	v, err := h.VolumeAt(ctx, i.Name)
	if errors.Is(err, host.ErrNotFound) {
		return true, nil
	}
	if err = Described(err, i.Format); err != nil {
		return false, err
	}
	id, err := Identity(ctx, h, v, i.Format)
	if id == "" {
		return i.Generation == volume.LastingGeneration(i.Generation), err // earlier versions did not record identities
	}
	return volume.LastingGeneration(id) != volume.LastingGeneration(i.Generation), err
}

// ProvesItself reports whether the file at the path of an image of this host has the image's identity in its header. The ledger proves
// less: it would recognize any file of that name.
func ProvesItself(ctx context.Context, h Locator, i volume.Image) (bool, error) {
	v, err := h.VolumeAt(ctx, i.Name)
	if err = Described(err, i.Format); err != nil || !hasHeader(v, i.Format) {
		return false, ignoreNotFound(err)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	id := image.Identity(head)
	return id != "" && id == volume.LastingGeneration(i.Generation), err
}

// Adopt returns the identity of a volume that is imported. A new identity is recorded in the host's ledger, and not in the header, because
// the volume may be open elsewhere.
func Adopt(ctx context.Context, h Identities, v host.StorageVolume, format string) (id string, err error) {
	if id, err = Identity(ctx, h, v, format); id != "" || err != nil {
		return id, err
	}
	id = newGeneration()
	return id, note(ctx, h, v, format, id)
}

// Engrave moves an identity from the ledger into the header of a qcow2 image that a machine is about to open, because the ledger would
// recognize any file of that name. Nothing is done while a machine has it open, since QEMU writes headers from memory.
func Engrave(ctx context.Context, h Engraver, i volume.Image) error {
	if i.Type != "file" || i.Format != "qcow2" || i.Generation == "" {
		return nil
	}
	v, err := h.VolumeAt(ctx, i.Name)
	if err != nil || !hasHeader(v, i.Format) {
		return ignoreNotFound(err)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err != nil || image.Identity(head) != "" {
		return err
	}
	given, err := image.WithIdentity(head, volume.LastingGeneration(i.Generation))
	if err != nil {
		return nil //nolint:nilerr // there is no room for it, or the image has another format: the ledger keeps it
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return err
	}
	isOpen := false
	err = eachUse(domains, v, func(d host.Domain, _ domainxml.Metadata, _ volume.Image) {
		isOpen = isOpen || d.Live != "" || d.Saved != ""
	})
	if err != nil || isOpen {
		return err
	}
	if err := h.WriteVolumeHead(ctx, v.Pool, v.Name, given); err != nil {
		return err
	}
	return dropEntry(ctx, h, v.Pool, v.Name)
}

// Engraver are the calls of a host that Engrave needs.
type Engraver interface {
	Locator
	Domains(ctx context.Context) ([]host.Domain, error)
}

// Disown removes the ledger's entry of that identity, whose volume is gone.
func Disown(ctx context.Context, h Identities, pool, name, id string) error {
	entry, err := h.SecretOfVolume(ctx, ledgerUsage(pool, name))
	if err == nil && entry == volume.LastingGeneration(id) {
		err = h.UndefineSecret(ctx, entry)
	}
	return ignoreNotFound(err)
}

// identify assigns a new volume its identity: in its header, or else in the ledger.
func identify(ctx context.Context, h Identities, v host.StorageVolume, id string) error {
	if !hasHeader(v, v.Format) {
		return note(ctx, h, v, v.Format, id)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err != nil {
		return err
	}
	given, err := image.WithIdentity(head, id)
	if errors.Is(err, image.ErrNoRoom) && image.Identity(head) != "" {
		return fmt.Errorf("%w: it has the identity of another volume, and no room for one of its own. %s", image.ErrUntrusted,
			image.Convert(v.Format, "qcow2"))
	}
	if errors.Is(err, image.ErrNoRoom) {
		return note(ctx, h, v, v.Format, id)
	}
	if err != nil {
		return err
	}
	if err := h.WriteVolumeHead(ctx, v.Pool, v.Name, given); err != nil {
		return err
	}
	return dropEntry(ctx, h, v.Pool, v.Name) // an entry of a former volume of that name would recognize any file that is created there
}

// Identity returns the identity in the header, or else the one in the ledger; empty if there is none.
func Identity(ctx context.Context, h Identities, v host.StorageVolume, format string) (string, error) {
	if v.Type == "dir" {
		return uuid.Nil.String(), nil // the file was replaced by a folder
	}
	if hasHeader(v, format) {
		head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
		if err != nil {
			return "", err
		}
		if id := image.Identity(head); id != "" {
			return id, nil
		}
	}
	return noted(ctx, h, v)
}

func hasHeader(v host.StorageVolume, format string) bool {
	return v.Type == "file" && format == "qcow2"
}
