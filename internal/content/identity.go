package content

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A volume is known by an identity, which is its generation, and not by its name: whoever deletes a volume can make another one
// under its name. A qcow2 image has its identity in its header. For all else, which has no room for one, the host keeps a ledger:
// a libvirt secret without a value for each volume, whose UUID is the identity. See decision 0018.

// ErrReplaced is the error of a volume that is not the one that was made: another one has its name. It is host.ErrNotFound.
var ErrReplaced = fmt.Errorf("%w: another volume has its name now", host.ErrNotFound)

// ErrUnrecognized is the error of a volume that has no identity any more, though it was given one.
var ErrUnrecognized = errors.New("the volume can't be recognized: it does not have the identity that the state knows, as after a " +
	"conversion, or when another file was created under its name. It was not changed. If it is another volume, move it to another folder, or delete it if it is not needed")

// ErrDataFile is the error of a qcow2 image whose header names another file for its data, which QEMU would open, whatever it is. Neither
// virtclaim nor the guest of such a disk writes that: somebody else had the image as raw.
var ErrDataFile = errors.New("its header references an external data file, which it did not when it was created or imported. Something that opened it " +
	"as raw has written that header; with it, the guest could read and write any file of the host. Restore the disk from a backup, or replace it")

// Identities is what is needed of a host to tell volumes apart.
type Identities interface {
	ledger
	VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error)
	WriteVolumeHead(ctx context.Context, pool, name string, head []byte) error
	DefineSecret(ctx context.Context, xml string) error
	UndefineSecret(ctx context.Context, uuid string) error
}

// ledger is where a host notes what is no part of a volume itself.
type ledger interface {
	SecretOfVolume(ctx context.Context, usage string) (uuid string, err error)
	SecretXML(ctx context.Context, uuid string) (string, error)
}

// Recognize is nil for the volume that was made with that identity, ErrReplaced for another one under its name, and
// ErrUnrecognized where nothing tells. format is the one that it is opened in, and not what its head says: a guest writes heads. One
// of an earlier version has an identity that nobody has noted yet: then it is.
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
	command, err := noteByHand(v, format, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("volume %s in storage pool %s: %w. If it is the right one, restore its identity on its host (not if it has a new content and is a "+
		"master: over another content its overlays are a mix of two disks):\n\n  %s", v.Name, v.Pool, ErrUnrecognized, command)
}

// noteByHand is the command that enters a volume into the ledger: what is made of it stays as it is, unlike after another import.
func noteByHand(v host.StorageVolume, format, id string) (string, error) {
	text, err := ledgerEntry(v, format, id)
	if err != nil {
		return "", err
	}
	var line strings.Builder
	for part := range strings.Lines(text) {
		line.WriteString(strings.TrimSpace(part))
	}
	return "echo '" + strings.ReplaceAll(line.String(), "'", "&apos;") + "' | virsh secret-define /dev/stdin", nil
}

// Described is an error of looking at a volume, but for host.ErrUndescribed of one that is opened as raw: its head means nothing then.
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

// RecognizeImage is Recognize for a local image of this host that somebody is about to open. One that has no identity, or that is in no
// storage pool of the host, is left to others.
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

// IsGone tells whether a local image of this host, which a machine has open, is in no storage pool any more, or whether another volume has its
// path: then the machine may be the only one that still has it.
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
		return i.Generation == volume.LastingGeneration(i.Generation), err // nobody has noted those of earlier versions
	}
	return volume.LastingGeneration(id) != volume.LastingGeneration(i.Generation), err
}

// ProvesItself tells whether the file that an image of this host names now has its identity in its header. One that the ledger knows may be any
// file that was put under the name.
func ProvesItself(ctx context.Context, h Locator, i volume.Image) (bool, error) {
	v, err := h.VolumeAt(ctx, i.Name)
	if err = Described(err, i.Format); err != nil || !hasHeader(v, i.Format) {
		return false, ignoreNotFound(err)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	id := image.Identity(head)
	return id != "" && id == volume.LastingGeneration(i.Generation), err
}

// Adopt is the identity of a volume that is imported. One that has none is noted in the host's ledger: others may have it open, so
// its header is left alone.
func Adopt(ctx context.Context, h Identities, v host.StorageVolume, format string) (id string, err error) {
	if id, err = Identity(ctx, h, v, format); id != "" || err != nil {
		return id, err
	}
	id = newGeneration()
	return id, note(ctx, h, v, format, id)
}

// Engrave moves an identity from the ledger into the header of a qcow2 image that a machine is about to open: the ledger would recognize
// whatever is put under its name. Nothing is done while a machine has it open, since QEMU writes headers from memory.
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
		return nil //nolint:nilerr // it has no room, or is no image that could have one: the ledger goes on
	}
	domains, err := h.Domains(ctx)
	if err != nil {
		return err
	}
	isOpen := false
	err = eachUse(domains, v, func(d host.Domain, _ domainxml.Mark, _ volume.Image) {
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

// Engraver is what Engrave needs of a host.
type Engraver interface {
	Locator
	Domains(ctx context.Context) ([]host.Domain, error)
}

// Disown removes what the host's ledger says of a volume of that identity, which is gone.
func Disown(ctx context.Context, h Identities, pool, name, id string) error {
	entry, err := h.SecretOfVolume(ctx, ledgerUsage(pool, name))
	if err == nil && entry == volume.LastingGeneration(id) {
		err = h.UndefineSecret(ctx, entry)
	}
	return ignoreNotFound(err)
}

// dropEntry removes what the host's ledger says of whatever had a name that no volume has now.
func dropEntry(ctx context.Context, h Identities, pool, name string) error {
	entry, err := h.SecretOfVolume(ctx, ledgerUsage(pool, name))
	if err == nil {
		err = h.UndefineSecret(ctx, entry)
	}
	return ignoreNotFound(err)
}

// identify gives a volume that was just made its identity: in its header, or else in the ledger.
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
			image.Convert("qcow2"))
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
	return dropEntry(ctx, h, v.Pool, v.Name) // that of a volume that had its name: it would recognize one that is put there by hand
}

// Identity is what the header says, or else the ledger; empty when neither does.
func Identity(ctx context.Context, h Identities, v host.StorageVolume, format string) (string, error) {
	if v.Type == "dir" {
		return uuid.Nil.String(), nil // a folder in the place of a file
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

// noted is what the ledger says of a volume. What it says of another one that had the name, which libvirt's own key of a logical
// volume tells, does not count.
func noted(ctx context.Context, h ledger, v host.StorageVolume) (string, error) {
	id, err := h.SecretOfVolume(ctx, ledgerUsage(v.Pool, v.Name))
	if err != nil {
		return "", ignoreNotFound(err)
	}
	if !hasOwnKey(v) {
		return id, nil
	}
	described, err := entryOf(ctx, h, id)
	if err == nil && described != "" && described != ledgerDescription(v) {
		return uuid.Nil.String(), nil // another volume
	}
	if described == "" {
		id = ""
	}
	return id, err
}

// entryOf is what the ledger describes; empty when there is no such entry.
func entryOf(ctx context.Context, h ledger, id string) (string, error) {
	text, err := h.SecretXML(ctx, id)
	if err != nil {
		return "", ignoreNotFound(err)
	}
	var entry libvirtxml.Secret
	if err := entry.Unmarshal(text); err != nil {
		return "", fmt.Errorf("read the secret %s: %w", id, err)
	}
	return entry.Description, nil
}

// note writes the identity of a volume into the ledger, over that of one that had its name, and in what format it is opened: what its
// head says later, a guest may have written. grown is how long a raw one is about to be.
func note(ctx context.Context, h Identities, v host.StorageVolume, format, id string, grown ...int64) error {
	if id == "" {
		return nil
	}
	usage := ledgerUsage(v.Pool, v.Name)
	former, err := h.SecretOfVolume(ctx, usage)
	if err == nil && former != volume.LastingGeneration(id) {
		err = h.UndefineSecret(ctx, former)
	}
	if ignoreNotFound(err) != nil {
		return err
	}
	text, err := ledgerEntry(v, format, id, grown...)
	if err != nil {
		return err
	}
	return h.DefineSecret(ctx, text)
}

// ledgerEntry is what the ledger has of a volume.
func ledgerEntry(v host.StorageVolume, format, id string, grown ...int64) (string, error) {
	s := libvirtxml.Secret{
		UUID: volume.LastingGeneration(id), Private: "yes", Ephemeral: "no", Description: ledgerDescription(v) + formatNote(v, format, grown...),
		Usage: &libvirtxml.SecretUsage{Type: "volume", Volume: ledgerUsage(v.Pool, v.Name)},
	}
	text, err := s.Marshal()
	if err != nil {
		return "", fmt.Errorf("describe the secret of volume %s: %w", v.Name, err)
	}
	return text, nil
}

// ledgerUsage is by pool and name: the path is another one when the pool's folder has moved.
func ledgerUsage(pool, name string) string { return "virtclaim " + pool + "/" + name }

func ledgerDescription(v host.StorageVolume) string {
	text := "identity of the volume " + v.Name + " in the storage pool " + v.Pool
	if hasOwnKey(v) {
		text += ", whose key is " + v.Key
	}
	return text
}

// hasOwnKey tells whether libvirt's key of a volume tells it from another one of its name.
func hasOwnKey(v host.StorageVolume) bool { return v.Type == "block" && v.Key != "" && v.Key != v.Path }
