package content

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

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
	"conversion, or when another file was created under its name. It was not changed. If it is another volume, move it to another " +
	"folder, or delete it if it is not needed")

// ErrDataFile is the error of a qcow2 image whose header references an external data file, which QEMU would open, whatever file it is.
// Neither virtclaim nor the guest of a qcow2 disk writes such a reference: another machine had the image attached as raw.
var ErrDataFile = errors.New("its header references an external data file, which it did not when it was created or imported. Something " +
	"that opened it as raw has written that header; with it, the guest could read and write any file of the host. Restore the disk from " +
	"a backup, or replace it")

// Identities are the calls of a host that are needed to identify volumes.
type Identities interface {
	ledger
	VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error)
	HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error)
	WriteVolumeHead(ctx context.Context, pool, name string, head []byte) error
	DefineSecret(ctx context.Context, xml string) error
	UndefineSecret(ctx context.Context, uuid string) error
}

// Seen is a volume as a host describes it, and what it is known by.
type Seen struct {
	host.StorageVolume
	// Head are the first bytes of a qcow2 image; empty for other formats, whose guests may have written them.
	Head []byte
	// ID is the identity in the header, or else the one in the ledger; empty if there is none.
	ID string
	// otherLength is the error of a raw file that has none of the lengths in the ledger.
	otherLength error
}

// usualHead is the length in bytes in which most headers end: a plan reads one of each disk.
const usualHead = 4 << 10

// See reads what a volume is known by. format is the one that it is opened in, not that of its header, which a guest can write.
func See(ctx context.Context, h Identities, v host.StorageVolume, format string) (s *Seen, err error) {
	s = &Seen{StorageVolume: v}
	if v.Type == "dir" {
		s.ID = uuid.Nil.String() // the file was replaced by a folder
		return s, nil
	}
	if hasHeader(v, format) {
		s.Head, err = h.VolumeHead(ctx, v.Pool, v.Name, usualHead)
		if err == nil && !image.IsWholeHeader(s.Head) {
			s.Head, err = h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
		}
		if err != nil {
			return s, err
		}
		if s.ID = image.Identity(s.Head); s.ID != "" {
			return s, nil
		}
	}
	entry, err := noted(ctx, h, v)
	if s.ID = entry.id; err == nil && format == "raw" {
		s.otherLength, err = entry.checkLength(ctx, h, v)
	}
	return s, err
}

// Inspect is See for a local image of this host. It is nil for an image without an identity, or outside of all storage pools of the host.
func Inspect(ctx context.Context, h Locator, i volume.Image) (*Seen, error) {
	if i.Type != "file" || i.Generation == "" {
		return nil, nil
	}
	v, err := h.VolumeAt(ctx, i.Name)
	if err = Described(err, i.Format); err != nil {
		return nil, ignoreNotFound(err)
	}
	return See(ctx, h, v, i.Format)
}

// InspectChain is Inspect for each image of a chain.
func InspectChain(ctx context.Context, h Locator, chain []volume.Image) (all []*Seen, err error) {
	for _, i := range chain {
		s, err := Inspect(ctx, h, i)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (s *Seen) is(id string) bool {
	return volume.LastingGeneration(s.ID) == volume.LastingGeneration(id)
}

// ProvesItself reports whether the file has the image's identity in its header. The ledger proves less: it would recognize any file of that
// name.
func (s *Seen) ProvesItself(i volume.Image) bool {
	return s != nil && image.Identity(s.Head) == volume.LastingGeneration(i.Generation)
}

// Recognize returns nil for the volume that was created with that identity, ErrReplaced for another one of its name, and ErrUnrecognized if
// neither header nor ledger has an identity, or if a raw file has another length than the ledger says. It writes nothing, because plans
// ask it, too: the identity of a volume of an earlier version is recorded by RecognizeChain.
func Recognize(s *Seen, format, id string) error {
	switch {
	case s.ID != "" && id != "" && s.is(id):
		return s.otherLength
	case s.ID != "" && id != "":
		return fmt.Errorf("volume %s in storage pool %s: %w (identity %q instead of %q)", s.Name, s.Pool, ErrReplaced, s.ID, id)
	case s.ID == "" && (id == "" || id != volume.LastingGeneration(id)):
		return nil
	}
	command, err := ledgerCommand(s.StorageVolume, format, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("volume %s in storage pool %s: %w. If it is the right one, restore its identity on its host (not if it has a new "+
		"content and is a master: over another content its overlays are a mix of two disks):\n\n  %s", s.Name, s.Pool, ErrUnrecognized,
		command)
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
	Identities
	VolumeAt(ctx context.Context, path string) (host.StorageVolume, error)
}

// RecognizeChain refuses a chain, top first, with an image that is about to be opened and is not the one of its generation, and what
// CheckBacking refuses. It is for applies: it records the identity of a volume of an earlier version, if it has not been yet.
func RecognizeChain(ctx context.Context, h Identities, chain []volume.Image, seen []*Seen) error {
	for n, s := range seen {
		if s == nil {
			continue
		}
		err := Recognize(s, chain[n].Format, chain[n].Generation)
		if err == nil && s.ID == "" {
			err = note(ctx, h, s.StorageVolume, chain[n].Format, chain[n].Generation)
		}
		if err != nil {
			return err
		}
	}
	return CheckBacking(chain, seen)
}

// IsGone reports whether a local image of this host, which a machine has open, is no longer in a storage pool, or was replaced by another
// volume at its path: then the machine's QEMU may have the only copy.
func IsGone(ctx context.Context, h Locator, i volume.Image) (bool, error) {
	s, err := Inspect(ctx, h, i)
	return err == nil && s.IsGone(i), err
}

// IsGone reports the same of an image that was inspected.
func (s *Seen) IsGone(i volume.Image) bool {
	switch {
	case i.Type != "file" || i.Generation == "":
		return false
	case s == nil:
		return true
	case s.ID == "":
		return i.Generation == volume.LastingGeneration(i.Generation) // earlier versions did not record identities
	}
	return !s.is(i.Generation)
}

// Adopt returns the identity of a volume that is imported. A new identity is recorded in the host's ledger, and not in the header, because
// the volume may be open elsewhere.
func Adopt(ctx context.Context, h Identities, v host.StorageVolume, format string) (id string, err error) {
	s, err := See(ctx, h, v, v.Format)
	if err != nil || s.ID != "" {
		return s.ID, err
	}
	id = newGeneration()
	return id, note(ctx, h, v, format, id)
}

// Engrave moves an identity from the ledger into the header of a qcow2 image that a machine is about to open, because the ledger would
// recognize any file of that name. Nothing is done while a machine has it open, since QEMU writes headers from memory.
func Engrave(ctx context.Context, h Identities, opened Opened, s *Seen, i volume.Image) error {
	if s == nil || len(s.Head) == 0 || image.Identity(s.Head) != "" || len(i.Hosts) > 1 { // a machine on another host may have it open
		return nil
	}
	for u := range opened.of(s.StorageVolume) {
		if u.domain.Live != nil || u.domain.Saved != nil {
			return nil
		}
	}
	head, err := h.VolumeHead(ctx, s.Pool, s.Name, image.HeadSize) // a machine may have written to it since it was seen
	if err != nil || image.Identity(head) != "" {
		return err
	}
	given, err := image.WithIdentity(head, volume.LastingGeneration(i.Generation))
	if err != nil {
		return nil // there is no room for it, or the image has another format: the ledger keeps it
	}
	if err := h.WriteVolumeHead(ctx, s.Pool, s.Name, given); err != nil {
		return err
	}
	return dropEntry(ctx, h, s.Pool, s.Name)
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

func hasHeader(v host.StorageVolume, format string) bool {
	return v.Type == "file" && format == "qcow2"
}
