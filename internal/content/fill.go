package content

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A volume of any storage is filled by QEMU: an image of exactly its size is created in a storage pool of a host, and a domain without a guest copies
// that onto the volume. The journal's domain shows all hosts that the volume is being written to. It stays after an interruption, so that no
// machine is started with half a volume.

// Fill is what is written onto a volume.
type Fill struct {
	// Target is the volume, of one raw image, with its capacity.
	Target volume.Volume
	// Source describes the image that is created and copied: its Pool, and its Content, Base, or Master with a Mode. Without those it is blank, which
	// erases the volume.
	Source Spec
	// Overwrite is whether the volume may have content.
	Overwrite bool
	// Verify is whether the volume is read back.
	Verify bool
	// Acquire returns when no machine uses the volume. It is called when the journal's domain, with that name and UUID, is visible to others.
	Acquire func(ctx context.Context, name, uuid string) error
	// Begin is called before the first byte is written, and End when all of it is.
	Begin, End func(context.Context) error
	// Write writes instead of this host, and calls begin before the first byte; nil if this host writes.
	Write func(ctx context.Context, begin func() error, overwrite bool) error
}

// FillHost is a host that can copy images onto volumes.
type FillHost interface {
	Host
	Attach(ctx context.Context, uuid, deviceXML string) error
	CopyOnto(ctx context.Context, uuid, target, diskXML string, report func(host.Progress)) error
	CopyDisk(ctx context.Context, fromXML, toXML string) error
	VolumeDigest(ctx context.Context, pool, name string) (string, error)
}

// ErrNotBlank is the error of a volume that has content, which it names.
var ErrNotBlank = errors.New("it is not blank")

// ErrHalfFilled is the error of a volume that has only a part of its new content.
var ErrHalfFilled = errors.New("the volume has only a part of its new content, and no machine is started with it until another apply has filled it")

const (
	// filling is the phase of a journal whose target has been written to.
	filling    = "filling"
	fillPrefix = "virtclaim-fill-"
	readSuffix = "-read"
	// endSize is how many bytes at both ends of a volume show whether it has content.
	endSize = 1 << 20
)

// FillID is the same for the same storage.
func FillID(target volume.Volume) string {
	i := target.Images[0]
	name := path.Clean(i.Name)
	if i.Type == "network" {
		name = i.Protocol + " " + i.Name
	}
	if i.Protocol == "iscsi" {
		name = strings.ToLower(name) // RFC 3722
	}
	sum := sha256.Sum256([]byte("fill\x00" + name))
	return hex.EncodeToString(sum[:8])
}

// IsFilling reports whether a host has the journal of filling that volume, which goes on or was interrupted.
func IsFilling(ctx context.Context, h Host, target volume.Volume) (bool, error) {
	_, err := h.LookupByName(ctx, "virtclaim-"+FillID(target))
	return err == nil, ignoreNotFound(err)
}

// Fill writes onto a volume, or goes on where the same owner was interrupted. The volume is unchanged after an error that is not ErrHalfFilled.
func (m *Creator) Fill(ctx context.Context, key string, h FillHost, f Fill, report func(host.Progress)) error {
	j, err := m.beginFill(ctx, key, h, f)
	if err != nil {
		return err
	}
	w := fill{Fill: f, creator: m, key: key, host: h, journal: j}
	err = w.run(ctx, report)
	return w.end(ctx, err)
}

// fill is a volume that is being filled.
type fill struct {
	Fill
	creator *Creator
	key     string
	host    FillHost
	journal *journal
	made    *Created
}

// beginFill creates the journal, in the place of one that the same owner has left.
func (m *Creator) beginFill(ctx context.Context, key string, h FillHost, f Fill) (*journal, error) {
	xml, err := domainxml.WritableDiskXML(f.Target)
	if err != nil {
		return nil, err
	}
	id := FillID(f.Target)
	j := &journal{host: h, Journal: domainxml.Journal{Name: "virtclaim-" + id, UUID: uuid.NewString(), Note: domainxml.Note{
		Owner: m.Owner, Pool: f.Source.Pool, Volume: fillPrefix + id, Generation: newGeneration(), Target: xml,
	}}}
	left, err := m.leftFill(ctx, h, f.Target)
	if ignoreNotFound(err) != nil {
		return nil, err
	}
	if left != nil {
		j.UUID, j.Note.Phase = left.UUID, left.Note.Phase
	}
	text, err := domainxml.BuildJournal(j.Journal)
	if err != nil {
		return nil, err
	}
	release, err := h.Hold(ctx, text)
	if err != nil {
		return nil, err
	}
	rest := j.heartbeat(ctx)
	j.release = func(ctx context.Context) error {
		rest()
		return release(ctx)
	}
	if left != nil {
		err = left.removeImages(ctx, m, key)
	}
	if err == nil {
		err = j.write(ctx)
	}
	if err != nil {
		err = errors.Join(err, j.stop(ctx))
	}
	return j, err
}

// leftFill is the journal that an interrupted apply of the same owner has left of filling that volume, once that has ended; host.ErrNotFound if
// there is none.
func (m *Creator) leftFill(ctx context.Context, h Host, target volume.Volume) (*journal, error) {
	name := "virtclaim-" + FillID(target)
	id, err := h.LookupByName(ctx, name)
	if err != nil {
		return nil, err
	}
	text, err := h.StoredXML(ctx, id) // what still runs has the metadata of its start
	if err != nil {
		return nil, err
	}
	note, ok, err := domainxml.ParseJournal(text)
	if err != nil {
		return nil, err
	}
	left := &journal{host: h, Journal: domainxml.Journal{Name: name, UUID: id, Note: note}}
	if !ok || note.Owner != m.Owner || m.Owner == "" {
		return nil, fmt.Errorf("the domain %s says that the volume is being filled by %s: %w. If that was interrupted, and the volume may be written to, remove "+
			"what it has left: virsh undefine %s; virsh vol-delete %s --pool %s", name, called(note.Owner), ErrForeign, name, note.Volume, note.Pool)
	}
	if err := left.awaitCreator(ctx); err != nil {
		return nil, err
	}
	return left, ignoreNotFound(left.stop(ctx))
}

// removeImages removes the images that an interrupted apply has created to fill a volume.
func (j *journal) removeImages(ctx context.Context, m *Creator, key string) error {
	if j.Note.Pool == "" {
		return nil // a pod has written
	}
	err := ignoreNotFound(j.host.DeleteVolume(ctx, j.Note.Pool, j.Note.Volume+readSuffix))
	if err != nil {
		return err
	}
	own, err := open(ctx, j.host, j.Note.Pool, j.Note.Volume)
	if err == nil { // its creation was interrupted
		return m.takeOver(ctx, key, own, Spec{Pool: j.Note.Pool, Name: j.Note.Volume})
	}
	if ignoreNotFound(err) != nil {
		return err
	}
	return ignoreNotFound(j.host.DeleteVolume(ctx, j.Note.Pool, j.Note.Volume))
}

// run creates the image, and copies it onto the volume.
func (w *fill) run(ctx context.Context, report func(host.Progress)) error {
	if err := w.Acquire(ctx, w.journal.Name, w.journal.UUID); err != nil {
		return err
	}
	if w.Write != nil {
		overwrite := w.Overwrite || w.journal.Note.Phase == filling
		err := w.Write(ctx, func() error { return w.begin(ctx) }, overwrite)
		if errors.Is(err, ErrNotBlank) {
			w.journal.Note.Phase = "" // it has refused to write
		}
		if err != nil {
			return err
		}
		return w.End(ctx)
	}
	if err := Recheck(ctx, w.host, w.Target.Images); err != nil {
		return err
	}
	if !w.Overwrite && w.journal.Note.Phase != filling {
		if err := w.checkBlank(ctx); err != nil {
			return err
		}
	}
	s := w.Source
	s.Name, s.Capacity = w.journal.Note.Volume, *w.Target.Capacity
	if s.Content == nil {
		s.Format = "qcow2"
	}
	made, err := w.creator.Make(ctx, w.key, w.host, s, report)
	if err != nil {
		return err
	}
	w.made = &made
	if made.Capacity != s.Capacity {
		return fmt.Errorf("the image has %d bytes, and the volume %d", made.Capacity, s.Capacity)
	}
	return w.copy(ctx, s, report)
}

// copy copies the image onto the volume.
func (w *fill) copy(ctx context.Context, s Spec, report func(host.Progress)) error {
	top := volume.Image{Type: "file", Name: w.made.Path, Format: w.made.Format, AccessMode: volume.WriteExclusive}
	chain := volume.Over(top, w.Target.Capacity, s.Mode, s.Master)
	if s.Base != nil {
		chain.Images = append(chain.Images, w.made.Base)
	}
	from, err := domainxml.DiskXML(chain)
	if err != nil {
		return err
	}
	if err := w.host.Attach(ctx, w.journal.UUID, from); err != nil {
		return err
	}
	if err := Recheck(ctx, w.host, w.Target.Images); err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.host.CopyOnto(ctx, w.journal.UUID, domainxml.CopyTarget, w.journal.Note.Target, report); err != nil {
		return err
	}
	if err := s.admit(ctx); err != nil { // the master may have been written to meanwhile
		return err
	}
	if w.Verify {
		if err := w.verify(ctx, report); err != nil {
			return err
		}
	}
	return w.End(ctx)
}

// begin records that the volume is no longer what it was.
func (w *fill) begin(ctx context.Context) error {
	if err := w.Begin(ctx); err != nil {
		return err
	}
	w.journal.Note.Phase = filling
	return w.journal.write(ctx)
}

// end removes the images, and then the journal, unless the volume has only a part of its content.
func (w *fill) end(ctx context.Context, cause error) error {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	err := ignoreNotFound(w.journal.stop(ctx))
	if w.made != nil && err == nil {
		err = w.creator.Remove(ctx, w.key, w.host, w.made.Pool, w.made.Name, w.made.Generation)
		if err == nil && w.made.Base.Name != "" {
			err = w.creator.CollectGarbage(ctx, w.key, w.host, w.made.Pool, path.Base(w.made.Base.Name))
		}
	}
	isHalf := cause != nil && w.journal.Note.Phase == filling
	if err == nil && !isHalf {
		err = ignoreNotFound(w.host.Undefine(ctx, w.journal.UUID))
	}
	if isHalf {
		cause = fmt.Errorf("%w. %w", cause, ErrHalfFilled)
	}
	if err != nil {
		err = fmt.Errorf("left behind, perhaps: the domain %s, and the volume %s in storage pool %s: %w. Another apply removes them",
			w.journal.Name, w.journal.Note.Volume, w.journal.Note.Pool, err)
	}
	return errors.Join(cause, err)
}

// ForgetFill removes what an interrupted apply of the same owner has left of filling a volume, and reports whether the volume has only a part of its
// content.
func (m *Creator) ForgetFill(ctx context.Context, key string, h Host, target volume.Volume) (isHalf bool, err error) {
	left, err := m.leftFill(ctx, h, target)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if err := left.removeImages(ctx, m, key); err != nil {
		return false, err
	}
	return left.Note.Phase == filling, ignoreNotFound(h.Undefine(ctx, left.UUID))
}

// checkBlank is ErrNotBlank if an end of the volume has content.
func (w *fill) checkBlank(ctx context.Context) error {
	n := min(endSize, *w.Target.Capacity)
	first, err := w.read(ctx, 0, n)
	if err != nil {
		return err
	}
	last, err := w.read(ctx, *w.Target.Capacity-n, n)
	if err != nil {
		return err
	}
	if bytes.Count(first, []byte{0}) == len(first) && bytes.Count(last, []byte{0}) == len(last) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotBlank, image.Describe(first, last))
}

// read reads n bytes of the volume: QEMU copies them into a file, because libvirt reads only files and devices of its host.
func (w *fill) read(ctx context.Context, offset, n int64) (part []byte, err error) {
	from, err := domainxml.PartXML(w.Target, offset, n)
	if err != nil {
		return nil, err
	}
	err = w.inFile(ctx, n, func(to string) error { return w.host.CopyDisk(ctx, from, to) }, func(pool, name string) error {
		part, err = w.host.VolumeHead(ctx, pool, name, uint64(n))
		return err
	})
	return part, err
}

// verify compares the volume with the image that was copied onto it.
func (w *fill) verify(ctx context.Context, report func(host.Progress)) error {
	volume, err := domainxml.PartXML(w.Target, 0, *w.Target.Capacity)
	if err != nil {
		return err
	}
	var digests []string
	for _, read := range []func(to string) error{
		func(to string) error { return w.host.CopyOnto(ctx, w.journal.UUID, domainxml.CopyTarget, to, report) },
		func(to string) error { return w.host.CopyDisk(ctx, volume, to) },
	} {
		err := w.inFile(ctx, *w.Target.Capacity, read, func(pool, name string) error {
			digest, err := w.host.VolumeDigest(ctx, pool, name)
			digests = append(digests, digest)
			return err
		})
		if err != nil {
			return err
		}
	}
	if digests[0] != digests[1] {
		return fmt.Errorf("what was read back is not what was written: its digest is %s, and should be %s", digests[1], digests[0])
	}
	return nil
}

// inFile has a file of n bytes filled, and used.
func (w *fill) inFile(ctx context.Context, n int64, fill func(diskXML string) error, use func(pool, name string) error) error {
	pool, name := w.Source.Pool, w.journal.Note.Volume+readSuffix
	err := w.host.CreateVolume(ctx, pool, libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: uint64(n), Unit: "bytes"}, Allocation: &libvirtxml.StorageVolumeSize{Unit: "bytes"},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := revert.Context(ctx)
		defer cancel()
		_ = w.host.DeleteVolume(ctx, pool, name) // the next apply tries again
	}()
	file, err := w.host.Volume(ctx, pool, name)
	if err != nil {
		return err
	}
	to, err := domainxml.WritableDiskXML(volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: file.Path}}})
	if err == nil {
		err = fill(to)
	}
	if err != nil {
		return err
	}
	return use(pool, name)
}
