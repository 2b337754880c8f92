package content

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func (m *Creator) make(ctx context.Context, key string, h Host, s Spec, report func(host.Progress)) (Created, error) {
	if err := s.checkLayers(); err != nil {
		return Created{}, err
	}
	left, err := open(ctx, h, s.Pool, s.Name)
	if err == nil {
		err = m.takeOver(ctx, key, left, s)
	}
	if ignoreNotFound(err) != nil {
		return Created{}, err
	}
	if err := refuseForeign(ctx, key, h, s); err != nil {
		return Created{}, err
	}
	if err := checkFree(ctx, h, s); err != nil {
		return Created{}, err
	}
	if s.Format != "qcow2" { // the entry of a former volume of that name would recognize what is created now
		if err := dropEntry(ctx, h, s.Pool, s.Name); err != nil {
			return Created{}, err
		}
	}
	j, err := begin(ctx, h, m.Owner, s)
	if err != nil {
		return Created{}, errors.Join(err, j.remove(ctx)) // the journal may exist although begin failed
	}
	v, err := m.fill(ctx, key, j, s, report)
	if err != nil {
		return Created{}, m.undo(ctx, key, j, s, err)
	}
	return Created{StorageVolume: v, Generation: j.Note.Generation, Bases: j.bases}, nil
}

// takeOver removes what an earlier creation of the same owner has left, once its creator has ended.
func (m *Creator) takeOver(ctx context.Context, key string, left *journal, s Spec) error {
	if m.Owner == "" || left.Note.Owner != m.Owner {
		return left.foreign("is being made by " + called(left.Note.Owner))
	}
	if left.Note.From != "" && (isHold(left.Note) || left.Note.Generation != s.generation) {
		return left.errMoves()
	}
	// The creator may be alive: wait for its end, then look again.
	if err := left.awaitCreator(ctx); err != nil {
		return err
	}
	now, err := open(ctx, left.host, s.Pool, s.Name)
	if err != nil {
		return err
	}
	if now.UUID != left.UUID {
		return now.foreign("is being created by another apply that has just begun")
	}
	return m.cleanUp(ctx, key, left, s)
}

// cleanUp removes what an interrupted creation has left, and the shared image created for it, unless the new volume uses the same one.
func (m *Creator) cleanUp(ctx context.Context, key string, left *journal, s Spec) error {
	err := m.removeStale(ctx, key, left)
	unused := slices.DeleteFunc(left.Note.Bases, func(base string) bool { return slices.Contains(s.baseNames, base) })
	if err == nil && len(unused) > 0 {
		err = m.CollectGarbage(ctx, key, left.host, s.Pool, unused...)
	}
	return err
}

// errMoves is the error of a volume that is a disk's which moves.
func (j *journal) errMoves() error {
	where := "to this host, from " + j.Note.From
	if isHold(j.Note) {
		where = "from this host, to " + j.Note.To
	}
	return fmt.Errorf("the domain %s says that the disk %s in storage pool %s moves %s: %w. Apply the configuration that moves it, with "+
		"either host", j.Name, j.Note.Volume, j.Note.Pool, where, ErrForeign)
}

// foreign is the error of a volume that must not be touched; it names the remedy.
func (j *journal) foreign(why string) error {
	n := j.Note
	return fmt.Errorf("the domain %s says that the volume %s in the storage pool %s %s: %w. If a creation of yours was interrupted, "+
		"remove what it has left: virsh undefine %s; virsh vol-delete %s --pool %s", j.Name, n.Volume, n.Pool, why, ErrForeign, j.Name,
		n.Volume, n.Pool)
}

func called(owner string) string {
	if owner == "" {
		return "a configuration without an owner"
	}
	return "the owner " + owner
}

// refuseForeign refuses a volume without a journal: an earlier apply has finished it, or another configuration or another tool has created
// it.
func refuseForeign(ctx context.Context, key string, h Host, s Spec) error {
	has, err := h.HasVolume(ctx, s.Pool, s.Name)
	if err == nil && has {
		err = fmt.Errorf("the volume %s is in the storage pool %s already, and %w. To manage it from here, as after an apply that was "+
			"killed before the state was written, run: terraform import <address of this resource> %s/%s/%s. A disk that is replaced "+
			"with create_before_destroy needs a name_prefix instead of a name", s.Name, s.Pool, ErrTaken, key, s.Pool, s.Name)
	}
	return err
}

// checkFree refuses a copy that is larger than the free space of the pool, before the first byte is copied.
func checkFree(ctx context.Context, h Host, s Spec) error {
	need := int64(0)
	switch {
	case s.Mode == volume.Clone && s.Master.Capacity != nil:
		need = *s.Master.Capacity
	case s.Preallocation == "falloc":
		need = s.Capacity
	}
	if need == 0 {
		return nil
	}
	free, err := h.PoolFree(ctx, s.Pool)
	if err == nil && free < need {
		return fmt.Errorf("the storage pool %s has %d bytes left, and the volume %s may need %d", s.Pool, free, s.Name, need)
	}
	return err
}

// fill creates the volume with its content, and records that it is finished.
func (m *Creator) fill(ctx context.Context, key string, j *journal, s Spec, report func(host.Progress)) (v host.StorageVolume, err error) {
	switch {
	case s.Content != nil:
		return j.upload(ctx, s, report, j.finish)
	case len(s.baseNames) > 0:
		return m.overBase(ctx, key, j, s, report)
	}
	if v, err = j.fill(ctx, s, report); err != nil {
		return v, err
	}
	return v, j.finish(ctx, v)
}

// fill creates the volume and, for a clone, copies the master into it.
func (j *journal) fill(ctx context.Context, s Spec, report func(host.Progress)) (host.StorageVolume, error) {
	made, err := j.create(ctx, s)
	if err != nil {
		return made, err
	}
	if s.Mode == volume.Clone {
		return made, j.clone(ctx, s, made.Path, report)
	}
	if err := s.admit(ctx); err != nil { // other processes can see the overlay now, by its header
		return made, err
	}
	overlay := volume.Image{Generation: j.Note.Generation, Name: s.Name}
	// from here on the master has no writer
	return made, CheckMasterRecords(ctx, j.host, append([]volume.Image{overlay}, s.Master.Images...))
}

// create creates the volume, over a master that is as it was seen.
func (j *journal) create(ctx context.Context, s Spec) (made host.StorageVolume, err error) {
	if err := Recheck(ctx, j.host, s.Master.Images); err != nil { // libvirt follows the names in an overlay's header
		return made, err
	}
	if err := CheckMasterRecords(ctx, j.host, s.Master.Images); err != nil {
		return made, err
	}
	if err := j.host.CreateVolume(ctx, s.Pool, s.xml(), s.Format == "qcow2" && s.isPreallocated()); err != nil {
		return made, err
	}
	return j.host.Volume(ctx, s.Pool, s.Name)
}

// clone copies the master into the file of the new volume.
func (j *journal) clone(ctx context.Context, s Spec, file string, report func(host.Progress)) error {
	top := volume.Image{Type: "file", Name: file, Format: s.Format, AccessMode: volume.WriteExclusive}
	chain := volume.Over(top, nil, volume.CopyOnWrite, s.Master)
	j.Copy = &chain
	if err := j.write(ctx); err != nil {
		return err
	}
	if err := s.admit(ctx); err != nil {
		return err
	}
	if err := Recheck(ctx, j.host, s.Master.Images); err != nil {
		return err
	}
	if err := j.copy(ctx, report); err != nil {
		return err
	}
	return s.admit(ctx)
}

// copy has the journal's domain copy the master, and verifies that the copy is complete.
func (j *journal) copy(ctx context.Context, report func(host.Progress)) error {
	release, err := j.host.StartCopier(ctx, j.UUID)
	if err != nil {
		return err
	}
	defer release()
	defer j.heartbeat(ctx)()
	if err := j.host.Pull(ctx, j.UUID, domainxml.CopyTarget, report); err != nil {
		return err
	}
	text, err := j.host.LiveXML(ctx, j.UUID)
	if err != nil {
		return err
	}
	live, err := domainxml.Read(text)
	if err != nil {
		return err
	}
	if attached := live.Attached(); len(attached) != 1 || len(attached[0].Volume.Images) != 1 {
		return errIncompleteCopy
	}
	return j.host.FinishCopier(ctx, j.UUID)
}

// errIncompleteCopy is the error of a copy that QEMU ended early.
var errIncompleteCopy = errors.New("the copy broke off: the master can't be read any more, or the storage pool is full. libvirt's log on " +
	"the host has what QEMU said")

func (s Spec) isPreallocated() bool {
	return s.Preallocation == "metadata" || s.Preallocation == "falloc"
}

// undo removes what a failed creation has created, and a shared image that only it needed. What another process has created since stays.
func (m *Creator) undo(ctx context.Context, key string, j *journal, s Spec, cause error) error {
	if errors.Is(cause, host.ErrExists) {
		cause = errors.Join(cause, j.remove(ctx))
	} else {
		cause = undo(ctx, j, cause)
	}
	if len(s.baseNames) == 0 {
		return cause
	}
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	if err := m.CollectGarbage(ctx, key, j.host, s.Pool, s.baseNames...); err != nil {
		return fmt.Errorf("%w\n\nLeft behind, perhaps: the images %s that disks of storage pool %s share, because: %w", cause,
			strings.Join(s.baseNames, ", "), s.Pool, err)
	}
	return cause
}

// undo removes a volume that could not be created, also after the operation's timeout.
func undo(ctx context.Context, j *journal, cause error) error {
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	if err := j.removeWithVolume(ctx); err != nil {
		return fmt.Errorf("%w\n\nLeft behind: the volume %s in storage pool %s and its journal, the domain %s, because they could not be "+
			"removed: %w. The next apply removes them", cause, j.Note.Volume, j.Note.Pool, j.Name, err)
	}
	return cause
}

// xml describes the volume. An overlay of a local image names that as its backing file, so that all tools see the dependency. libvirt
// can't create an overlay of network storage: there only the domain's chain names the master.
func (s Spec) xml() libvirtxml.StorageVolume {
	x := libvirtxml.StorageVolume{
		Name:       s.Name,
		Capacity:   &libvirtxml.StorageVolumeSize{Value: uint64(s.Capacity), Unit: "bytes"},
		Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: s.Format}},
	}
	if s.Preallocation == "falloc" {
		x.Allocation.Value = x.Capacity.Value
	}
	if s.Format == "qcow2" {
		x.Target.Compat = "1.1" // libvirt's own default is the format of 2010
		if s.ClusterSize != 0 {
			x.Target.ClusterSize = &libvirtxml.StorageVolumeTargetClusterSize{Value: uint64(s.ClusterSize), Unit: "B"}
		}
	}
	if s.Mode == volume.CopyOnWrite || s.Mode == volume.CopyOnRead {
		if below := s.Master.Images[0]; below.Type == "file" || below.Type == "block" {
			x.BackingStore = &libvirtxml.StorageVolumeBackingStore{
				Path: below.Name, Format: &libvirtxml.StorageVolumeTargetFormat{Type: below.Format},
			}
		}
	}
	return x
}
