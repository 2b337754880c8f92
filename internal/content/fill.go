package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A volume of any storage is filled by QEMU: an image of exactly its size is created in a storage pool of a host, and a domain without a
// guest copies that onto the volume. The journal's domain shows all hosts that the volume is being written to. It stays after an
// interruption, so that no machine is started with half a volume.

// Fill is what is written onto a volume.
type Fill struct {
	// Target is the volume, of one raw image, with its capacity.
	Target volume.Volume
	// Source describes the image that is created and copied: its Pool, and its Content, Base, or Master with a Mode. Without those it is
	// blank, which erases the volume.
	Source Spec
	// Content is the same for the same content; empty if it is not known before it is written.
	Content string
	// Overwrite is whether the volume may have content.
	Overwrite bool
	// Verify is whether the volume is read back.
	Verify bool
	// Acquire returns when no machine uses the volume. It is called when the journal's domain, with that name and UUID, is visible to
	// others.
	Acquire func(ctx context.Context, name, uuid string) error
	// Begin is called before the first byte is written, and End when all of it is.
	Begin, End func(context.Context) error
	// Write writes instead of this host, and calls begin before the first byte, and after it has found the target blank, or overwrite is
	// set: what is there from then on is its own. nil if this host writes.
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
var ErrHalfFilled = errors.New("the volume has only a part of its new content, and no machine is started with it until another apply has " +
	"filled it")

// ErrFilled is the error of a volume that has all of its new content, while what was needed for that is left.
var ErrFilled = errors.New("the volume has all of its new content, and no machine is started with it until another apply")

const (
	// filling is the phase of a journal whose target has been written to.
	filling    = "filling"
	fillPrefix = "virtclaim-fill-"
	readSuffix = "-read"
)

// FillID is the same for the same storage (volume.Image.StorageKey).
func FillID(target volume.Volume) string {
	sum := sha256.Sum256([]byte("fill\x00" + target.Images[0].StorageKey()))
	return hex.EncodeToString(sum[:8])
}

// fillName is the name of the journal's domain of filling a volume.
func fillName(target volume.Volume) string { return "virtclaim-" + FillID(target) }

// IsFilling reports whether a host has the journal of filling that volume, which goes on or was interrupted.
func IsFilling(ctx context.Context, h Host, target volume.Volume) (bool, error) {
	_, err := h.LookupByName(ctx, fillName(target))
	return err == nil, ignoreNotFound(err)
}

// Fill writes onto a volume, or goes on where the same owner was interrupted. The volume is unchanged after an error
// that is neither ErrHalfFilled nor ErrFilled.
func (m *Creator) Fill(ctx context.Context, key string, h FillHost, f Fill, report func(host.Progress)) error {
	w := fill{Fill: f, creator: m, key: key, host: h}
	err := w.start(ctx)
	if w.journal == nil {
		return err
	}
	if err == nil {
		err = w.run(ctx, report)
	}
	return w.end(ctx, err)
}

// fill is a volume that is being filled.
type fill struct {
	Fill
	creator *Creator
	key     string
	host    FillHost
	// journal is nil until its domain is there.
	journal *journal
}

// start creates the journal, in the place of one that the same owner has left.
func (w *fill) start(ctx context.Context) error {
	xml, err := domainxml.WritableDiskXML(w.Target)
	if err != nil {
		return err
	}
	id, generation := FillID(w.Target), newGeneration()
	j := &journal{host: w.host, Journal: domainxml.Journal{Name: fillName(w.Target), UUID: uuid.NewString(), Note: domainxml.Note{
		// Another host may have the pool's folder, too.
		Owner: w.creator.Owner, Pool: w.Source.Pool, Volume: fillPrefix + id + "-" + generation[:8], Generation: generation, Target: xml,
	}}}
	if w.Write == nil {
		if j.Note.Bases, err = w.Source.namesOfBases(ctx, w.host); err != nil {
			return err
		}
	}
	left, err := w.creator.leftFill(ctx, w.host, w.Target)
	if ignoreNotFound(err) != nil {
		return err
	}
	if left != nil {
		j.UUID, j.Note.Phase, j.Note.Filled = left.UUID, left.Note.Phase, left.Note.Filled
	}
	text, err := domainxml.BuildJournal(j.Journal)
	if err != nil {
		return err
	}
	release, err := w.host.Hold(ctx, text)
	if err != nil {
		return err
	}
	rest := j.heartbeat(ctx)
	j.release = func(ctx context.Context) error {
		rest()
		return release(ctx)
	}
	if left != nil {
		if err := left.removeImages(ctx, w.creator, w.key); err != nil {
			return errors.Join(err, j.stop(ctx)) // the journal that names them stays
		}
	}
	w.journal = j
	return j.write(ctx)
}

// leftFill is the journal that an interrupted apply of the same owner has left of filling that volume, once that has ended;
// host.ErrNotFound if there is none.
func (m *Creator) leftFill(ctx context.Context, h Host, target volume.Volume) (*journal, error) {
	name := fillName(target)
	id, err := h.LookupByName(ctx, name)
	if err != nil {
		return nil, err
	}
	left := &journal{host: h, Journal: domainxml.Journal{Name: name, UUID: id}}
	ok, err := left.read(ctx)
	if err != nil {
		return nil, err
	}
	if note := left.Note; !ok || note.Owner != m.Owner || m.Owner == "" {
		return nil, fmt.Errorf("the domain %s says that the volume is being filled by %s: %w. If that was interrupted, and the volume "+
			"may be written to, remove what it has left: virsh undefine %s; virsh vol-delete %s --pool %s", name, called(note.Owner),
			ErrForeign, name, note.Volume, note.Pool)
	}
	if err := left.awaitCreator(ctx); err != nil {
		return nil, err
	}
	if err := left.stop(ctx); err != nil {
		return nil, err
	}
	if _, err := left.read(ctx); err != nil { // it may have begun to write meanwhile
		return nil, err
	}
	return left, nil
}

// read reads the note as it is stored: that of the running domain is from its start.
func (j *journal) read(ctx context.Context) (ok bool, err error) {
	text, err := j.host.StoredXML(ctx, j.UUID)
	if err == nil {
		j.Note, ok, err = domainxml.ParseJournal(text)
	}
	return ok, err
}

// removeImages removes what there is of the images that were created to fill a volume.
func (j *journal) removeImages(ctx context.Context, m *Creator, key string) error {
	pool, name := j.Note.Pool, j.Note.Volume
	if pool == "" {
		return nil // a pod writes
	}
	err := ignoreNotFound(j.host.DeleteVolume(ctx, pool, name+readSuffix))
	if err != nil {
		return err
	}
	own, err := open(ctx, j.host, pool, name)
	if err == nil { // its creation was interrupted
		err = m.takeOver(ctx, key, own, Spec{Pool: pool, Name: name})
	}
	if ignoreNotFound(err) != nil {
		return err
	}
	if err := ignoreNotFound(j.host.DeleteVolume(ctx, pool, name)); err != nil {
		return err
	}
	if err := dropRecord(ctx, j.host, masterUsage(j.Note.Generation)); err != nil {
		return err
	}
	if err := dropEntry(ctx, j.host, pool, name); err != nil || len(j.Note.Bases) == 0 {
		return err
	}
	return m.CollectGarbage(ctx, key, j.host, pool, j.Note.Bases...)
}

// run creates the image, and copies it onto the volume.
func (w *fill) run(ctx context.Context, report func(host.Progress)) error {
	if w.Content != "" && w.journal.Note.Filled == w.Content { // by an apply that has not got to its end
		return w.End(ctx)
	}
	if err := w.Acquire(ctx, w.journal.Name, w.journal.UUID); err != nil {
		return err
	}
	if w.Write != nil {
		was := w.journal.Note.Phase
		err := w.Write(ctx, func() error { return w.begin(ctx, filling) }, w.Overwrite || was == filling)
		if errors.Is(err, ErrNotBlank) {
			w.journal.Note.Phase = was // it has refused to write
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
	s.Name, s.generation = w.journal.Note.Volume, w.journal.Note.Generation
	s.Capacity, s.IsFixed = *w.Target.Capacity, true
	if s.Content == nil {
		s.Format = "qcow2"
	}
	made, err := w.creator.Make(ctx, w.key, w.host, s, report)
	if err != nil {
		return err
	}
	if made.Capacity != s.Capacity {
		return fmt.Errorf("the image has %s, and the volume %s", binarySize(made.Capacity), binarySize(s.Capacity))
	}
	return w.copy(ctx, s, made, report)
}

// copy copies the image onto the volume.
func (w *fill) copy(ctx context.Context, s Spec, made Created, report func(host.Progress)) error {
	top := volume.Image{Type: "file", Name: made.Path, Format: made.Format, AccessMode: volume.WriteExclusive}
	chain := volume.Over(top, w.Target.Capacity, s.Mode, s.Master)
	chain.Images = append(chain.Images, made.Bases...)
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
	if err := w.begin(ctx, filling); err != nil {
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
func (w *fill) begin(ctx context.Context, phase string) error {
	if err := w.Begin(ctx); err != nil {
		return err
	}
	w.journal.Note.Phase, w.journal.Note.Filled = phase, ""
	return w.journal.write(ctx)
}

// end removes the images, and then the journal, unless the volume has only a part of its content.
func (w *fill) end(ctx context.Context, cause error) error {
	ctx, cancel := revert.Extend(ctx)
	defer cancel()
	isHalf := cause != nil && w.journal.Note.Phase != ""
	var err error
	if cause == nil { // an apply that waits for the end must not take it for an interruption
		w.journal.Note.Phase, w.journal.Note.Filled = "", w.Content
		err = w.journal.write(ctx)
	}
	err = errors.Join(err, ignoreNotFound(w.journal.stop(ctx)))
	if err == nil {
		err = w.journal.removeImages(ctx, w.creator, w.key)
	}
	if err == nil && !isHalf {
		if err = w.journal.undefineFill(ctx); err != nil { // it may be gone, and the answer lost
			err = w.journal.undefineFill(ctx)
		}
	}
	if isHalf {
		cause = fmt.Errorf("%w. %w", cause, ErrHalfFilled)
	}
	if err != nil && cause == nil {
		cause = ErrFilled
	}
	if err != nil {
		err = fmt.Errorf("left behind, perhaps: the domain %s, and the volume %s in storage pool %s: %w. Another apply removes them",
			w.journal.Name, w.journal.Note.Volume, w.journal.Note.Pool, err)
	}
	return errors.Join(cause, err)
}

// undefineFill removes the journal's domain, unless another apply of the same owner has it by now.
func (j *journal) undefineFill(ctx context.Context) error {
	is := &journal{host: j.host, Journal: domainxml.Journal{Name: j.Name, UUID: j.UUID}}
	if ok, err := is.read(ctx); err != nil || ok && is.Note.Generation != j.Note.Generation {
		return ignoreNotFound(err)
	}
	return ignoreNotFound(j.host.Undefine(ctx, j.UUID))
}

// ForgetFill removes what an interrupted apply of the same owner has left of filling a volume, and reports whether the volume has only a
// part of its content.
func (m *Creator) ForgetFill(ctx context.Context, key string, h Host, target volume.Volume) (isHalf bool, err error) {
	left, err := m.leftFill(ctx, h, target)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if err := left.removeImages(ctx, m, key); err != nil {
		return false, err
	}
	return left.Note.Phase != "", ignoreNotFound(h.Undefine(ctx, left.UUID))
}
