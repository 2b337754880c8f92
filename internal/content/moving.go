package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A disk moves to another host in three steps. Prepare makes its volume there, without content, whose journal stays. Then the content
// comes: by a migration of the machine that runs with it, or by Bring. Once that is certain, the journal has the phase came: from then on
// the new volume counts, and never the former one again. Arrive removes that, and at last the journal, which until then keeps others from
// the new one, and says where the former one is.

// Former is where the volume of a moving disk has been, under the same name. Came tells that it does not count any more.
type Former struct {
	Host, Pool string
	Came       bool
}

// Prepare makes the volume of a disk that moves to this host: as specified, and with the same generation. What an earlier Prepare has made
// is made again, unless a domain has it.
func (m *Creator) Prepare(ctx context.Context, key string, h Host, s Spec, from Former, generation string,
	report func(host.Progress),
) (Created, error) {
	m.release(s.claimKey(key)) // it may have been prepared by this process
	s.from, s.generation = &from, volume.LastingGeneration(generation)
	return m.Make(ctx, key, h, s, report)
}

// waitForContent has the journal show the volume, so that no other domain gets it.
func (j *journal) waitForContent(ctx context.Context, v host.StorageVolume) error {
	j.Copy = &volume.Volume{Images: []volume.Image{
		{Type: "file", Name: v.Path, Format: v.Format, AccessMode: volume.WriteExclusive},
	}}
	return j.write(ctx)
}

// Mover completes the moves of disks between the hosts of a configuration.
type Mover struct {
	Creator *Creator
	Hosts   *host.Registry
}

// moving is a disk that moves, with its journal on the host that it moves to. from is nil, and lost says so, if that is not in the
// configuration any more.
type moving struct {
	*journal
	to, from *host.Host
	lost     error
	image    volume.Image
}

// find is the move of an image to the host of that key; nil if it does not move there.
func (m Mover) find(ctx context.Context, key string, i volume.Image) (*moving, error) {
	if !i.IsDisk() || i.Generation == "" {
		return nil, nil
	}
	to, err := m.Hosts.Host(key)
	if err != nil {
		return nil, err
	}
	pool, err := to.PoolOfTarget(ctx, path.Dir(i.Name)) // the volume may be missing while it is copied
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	j, err := open(ctx, to, pool, path.Base(i.Name))
	if err != nil || j.Note.From == "" || isHold(j.Note) || j.Note.Generation != volume.LastingGeneration(i.Generation) {
		return nil, ignoreNotFound(err)
	}
	d := &moving{journal: j, to: to, image: i}
	d.from, d.lost = m.Hosts.Host(j.Note.From)
	return d, nil
}

// must is find for a disk whose content is not here: without its record nothing tells where that is.
func (m Mover) must(ctx context.Context, key string, i volume.Image) (*moving, error) {
	d, err := m.find(ctx, key, i)
	if err == nil && d == nil {
		err = fmt.Errorf("the record of its move to host %s is gone (a domain virtclaim-…), so that its content there is not known. The "+
			"former host has it still. Set that host again", key)
	}
	return d, err
}

// Former is where the image of a disk that moves to the host of that key still is; nil if it does not move there.
func (m Mover) Former(ctx context.Context, key string, i volume.Image) (*Former, error) {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return nil, err
	}
	return &Former{d.Note.From, d.Note.FromPool, d.Note.Phase == came}, nil
}

// Bring copies the content of a disk that moves to the host of that key. No domain may write to the former volume meanwhile, which the
// caller sees to; CheckBrought tells whether one has. What was copied before is copied again.
func (m Mover) Bring(ctx context.Context, key string, i volume.Image, report func(host.Progress)) (brought string, err error) {
	d, err := m.must(ctx, key, i)
	if err != nil {
		return "", err
	}
	return d.bring(ctx, "", report)
}

// CheckBrought refuses a disk that was written to on its former host since Bring, which has returned the same then.
func (m Mover) CheckBrought(ctx context.Context, key string, i volume.Image, brought string) error {
	d, err := m.must(ctx, key, i)
	if err != nil {
		return err
	}
	return d.checkSame(ctx, brought)
}

func (d *moving) checkSame(ctx context.Context, before string) error {
	now, err := d.former(ctx)
	if err == nil && now.written() != before {
		err = fmt.Errorf("disk %s was written to on host %s while it was copied. Apply again, and do not start its machine meanwhile",
			d.Note.Volume, d.Note.From)
	}
	return err
}

// written changes with each write to a volume.
func (s *Seen) written() string { return fmt.Sprintf("%s %d", s.Modified, s.Physical) }

// Begin records that a migration is about to copy a disk to the host of that key: what it leaves when it fails is made again.
func (m Mover) Begin(ctx context.Context, key string, i volume.Image) error {
	d, err := m.must(ctx, key, i)
	if err != nil {
		return err
	}
	return d.setPhase(ctx, begun)
}

// bring is Bring; the new domain of that UUID may be defined with the disk already.
func (d *moving) bring(ctx context.Context, of string, report func(host.Progress)) (brought string, err error) {
	if d.Note.Phase == came {
		return "", ErrCame
	}
	if user, err := d.userThere(ctx, of); err != nil || user != "" {
		return "", errors.Join(err, d.errHas(user, d.to.Key))
	}
	seen, err := d.former(ctx)
	if err != nil {
		return "", err
	}
	if err := d.empty(ctx); err != nil {
		return "", err
	}
	pool, name := d.Note.Pool, d.Note.Volume
	err = d.from.CopyVolumeTo(ctx, d.to, host.VolumeCopy{
		Pool: d.Note.FromPool, Name: name, ToPool: pool, ToName: name, Report: report, BeforeCommit: d.checkThere,
	})
	if err == nil {
		err = d.adapt(ctx)
	}
	if err == nil {
		err = d.checkSame(ctx, seen.written())
	}
	return seen.written(), err
}

// The phases of a journal: a migration has begun to copy; the new volume counts.
const (
	begun = "begun"
	came  = "came"
)

// Came records that the content of a disk is on the host of that key, to which its machine has moved.
func (m Mover) Came(ctx context.Context, key string, i volume.Image) error {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return err
	}
	return d.came(ctx)
}

func (d *moving) came(ctx context.Context) error { return d.setPhase(ctx, came) }

func (d *moving) setPhase(ctx context.Context, phase string) error {
	d.Note.Phase = phase
	return d.waitForContent(ctx, host.StorageVolume{Path: d.image.Name, Format: d.image.Format})
}

// checkThere is an error if the journal is gone.
func (d *moving) checkThere(ctx context.Context) error {
	_, err := d.to.State(ctx, d.UUID)
	return err
}

// adapt names the shared image of this host in the copied header, and assigns the identity.
func (d *moving) adapt(ctx context.Context) error {
	pool, name := d.Note.Pool, d.Note.Volume
	if n := len(d.Note.Bases); n > 0 {
		head, err := d.to.VolumeHead(ctx, pool, name, image.HeadSize)
		if err == nil {
			head, err = image.WithBacking(head, path.Join(path.Dir(d.image.Name), d.Note.Bases[n-1]))
		}
		if err == nil {
			err = d.to.WriteVolumeHead(ctx, pool, name, head)
		}
		if err != nil {
			return err
		}
	}
	v, err := d.to.Volume(ctx, pool, name)
	if err = Described(err, d.image.Format); err != nil {
		return err
	}
	v.Format = d.image.Format
	if err := identify(ctx, d.to, v, d.Note.Generation); err != nil {
		return err
	}
	xml, err := domainxml.WritableDiskXML(volume.Volume{Images: []volume.Image{d.image}})
	if err != nil {
		return err
	}
	return d.to.Flush(ctx, xml) // the former one is deleted after this
}

// userThere is a domain on the new host that has the volume; empty if none has it but the one of that UUID, which is being created, and the
// machine that is to come with it.
func (d *moving) userThere(ctx context.Context, of string) (string, error) {
	users, err := guard.Users(ctx, d.to.Key, d.to, d.image)
	for _, u := range users {
		isNew := u.UUID == of && u.Metadata.Phase == domainxml.Creating
		if u.Domain != d.Name && (u.Live || !u.Metadata.Arrives && !isNew) {
			return u.Domain, err
		}
	}
	return "", err
}

func (d *moving) errHas(domain, key string) error {
	if domain == "" {
		return nil
	}
	return fmt.Errorf("%w: domain %s on host %s has disk %s already. Apply again", guard.ErrInUse, domain, key, d.Note.Volume)
}

// MoveAlone moves a disk that no machine has on its former host, where it is held until it has arrived. The domain of that UUID may be
// defined with it on the new host.
func (m Mover) MoveAlone(ctx context.Context, key string, i volume.Image, of string, report func(host.Progress)) error {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return err
	}
	if d.Note.Phase != came {
		seen, err := d.former(ctx)
		if err == nil {
			err = d.hold(ctx, seen.Path)
		}
		if err == nil {
			_, err = d.bring(ctx, of, report)
		}
		if err == nil {
			err = d.came(ctx)
		}
		if err != nil {
			return err
		}
	}
	return m.Arrive(ctx, key, i)
}

// IsLeft reports whether no machine will bring a disk to the host of that key, for which it was prepared.
func (m Mover) IsLeft(ctx context.Context, key string, i volume.Image) (bool, error) {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return false, err
	}
	if d.from == nil {
		return d.Note.Phase == came, nil
	}
	seen, err := d.former(ctx)
	if errors.Is(err, host.ErrNotFound) && d.Note.Phase == came {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	user, err := d.userHere(ctx, seen.Path)
	if err != nil || user != "" || d.Note.Phase == came {
		return err == nil && user == "", err
	}
	users, err := guard.Users(ctx, key, d.to, d.image)
	return err == nil && !slices.ContainsFunc(users, func(u guard.Use) bool { return u.Domain != d.Name }), err
}

// IsTorn reports whether a copy to the host of that key was interrupted, which has replaced what was prepared there.
func (m Mover) IsTorn(ctx context.Context, key string, i volume.Image) (bool, error) {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil || d.Note.Phase == came {
		return false, err
	}
	if user, err := d.userThere(ctx, ""); err != nil || user != "" {
		return false, err
	}
	if d.Note.Phase == begun {
		return true, nil
	}
	v, err := d.to.Volume(ctx, d.Note.Pool, d.Note.Volume)
	if err = Described(err, i.Format); err != nil {
		return errors.Is(err, host.ErrNotFound), ignoreNotFound(err)
	}
	seen, err := See(ctx, d.to, v, i.Format)
	if err != nil {
		return false, err
	}
	unfinished, err := d.to.IsUnfinished(ctx, d.Note.Pool, d.Note.Volume)
	return unfinished || Recognize(seen, i.Format, i.Generation) != nil, err
}

// held is the name of the domain that keeps others from the former volume.
func (d *moving) held() string { return journalName(d.Note.FromPool, d.Note.Volume) }

// hold keeps machines from the former volume while it is copied. What an interrupted move has left holds it, too.
func (d *moving) hold(ctx context.Context, file string) error {
	note := domainxml.Note{Owner: d.Note.Owner, Pool: d.Note.FromPool, Volume: d.Note.Volume, Generation: d.Note.Generation}
	note.From, note.FromPool, note.To, note.ToPool = d.Note.From, d.Note.FromPool, d.to.Key, d.Note.Pool
	text, err := domainxml.BuildJournal(domainxml.Journal{
		Name: d.held(), UUID: uuid.NewString(), Note: note,
		Copy: &volume.Volume{Images: []volume.Image{
			{Type: "file", Name: file, Format: d.image.Format, AccessMode: volume.WriteExclusive},
		}},
	})
	if err != nil {
		return err
	}
	if err = d.from.Reserve(ctx, text); errors.Is(err, host.ErrExists) {
		err = nil
	}
	if err != nil {
		return err
	}
	user, err := d.userHere(ctx, file)
	if err == nil && user != "" {
		err = errors.Join(d.errHas(user, d.Note.From), letGo(ctx, d.from, d.Note.FromPool, d.Note.Volume, d.Note.Generation))
	}
	return err
}

// isHold reports whether a journal holds the volume of a disk that moves from its host.
func isHold(n domainxml.Note) bool { return n.To != "" }

// heldBy is what holds a volume on the host of that key because the disk of that generation moves from there; nil if nothing does.
func heldBy(ctx context.Context, h *host.Host, pool, name, generation string) (*journal, error) {
	j, err := open(ctx, h, pool, name)
	if err != nil || !isHold(j.Note) || j.Note.Generation != volume.LastingGeneration(generation) {
		return nil, ignoreNotFound(err)
	}
	return j, nil
}

// GiveUp removes what an interrupted copy has left of a disk that is held on its host, there and on the host that it was copied to.
func (m Mover) GiveUp(ctx context.Context, at Former, name string, i volume.Image) error {
	h, err := m.Hosts.Host(at.Host)
	if err != nil {
		return err
	}
	j, err := heldBy(ctx, h, at.Pool, name, i.Generation)
	if err != nil || j == nil {
		return err
	}
	to, err := m.Hosts.Host(j.Note.To)
	if err != nil {
		return err
	}
	pool, err := to.Pool(ctx, j.Note.ToPool)
	if err != nil {
		return err
	}
	i.Name = path.Join(pool.Path, name)
	if err := m.Withdraw(ctx, j.Note.To, i); err != nil {
		return fmt.Errorf("what was copied to host %s: %w", j.Note.To, err)
	}
	return letGo(ctx, h, at.Pool, name, i.Generation)
}

// letGo removes the hold on a volume, if there is one.
func letGo(ctx context.Context, h *host.Host, pool, name, generation string) error {
	j, err := heldBy(ctx, h, pool, name, generation)
	if err != nil || j == nil {
		return err
	}
	if err = h.Undefine(ctx, j.UUID); err != nil { // it may be gone, and the answer lost
		err = ignoreNotFound(h.Undefine(ctx, j.UUID))
	}
	return err
}

// LetGo ends the hold on the volume of a disk that has moved from there.
func (m Mover) LetGo(ctx context.Context, from Former, name, generation string) error {
	h, err := m.Hosts.Host(from.Host)
	if err != nil {
		return err
	}
	return letGo(ctx, h, from.Pool, name, generation)
}

// IsHeld reports whether a volume is held on its host because the disk of that generation moves from there, also if the volume is gone.
func (m Mover) IsHeld(ctx context.Context, at Former, name, generation string) (bool, error) {
	h, err := m.Hosts.Host(at.Host)
	if err != nil {
		return false, err
	}
	j, err := heldBy(ctx, h, at.Pool, name, generation)
	return j != nil, err
}

// userHere is a domain on the former host that has the volume there, other than what holds it; empty without one.
func (d *moving) userHere(ctx context.Context, file string) (string, error) {
	users, err := guard.Users(ctx, d.Note.From, d.from, volume.Image{Type: "file", Name: file})
	for _, u := range users {
		if u.Domain != d.held() {
			return u.Domain, err
		}
	}
	return "", err
}

// empty replaces the prepared volume by one that a copy can fill.
func (d *moving) empty(ctx context.Context) error {
	pool, name := d.Note.Pool, d.Note.Volume
	if err := ignoreNotFound(d.to.DeleteVolume(ctx, pool, name)); err != nil {
		return err
	}
	return d.to.CreateVolume(ctx, pool, libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1, Unit: "bytes"},
		Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
}

// former is the former volume, which is recognized by its identity. host.ErrNotFound is the error of one that is gone.
func (d *moving) former(ctx context.Context) (*Seen, error) {
	if d.lost != nil {
		return nil, d.lost
	}
	v, err := d.from.Volume(ctx, d.Note.FromPool, d.Note.Volume)
	if err = Described(err, d.image.Format); err != nil {
		return nil, err
	}
	seen, err := See(ctx, d.from, v, d.image.Format)
	if err != nil {
		return nil, err
	}
	return seen, Recognize(seen, d.image.Format, d.Note.Generation)
}

// Arrive ends the move of an image to the host of that key, whose content is there: the former volume is removed, unless a domain has it,
// and what it has shared with others and no other one needs. It is no error if the image does not move.
func (m Mover) Arrive(ctx context.Context, key string, i volume.Image) error {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return err
	}
	if d.Note.Phase != came {
		return fmt.Errorf("the content of disk %s has not come from host %s yet", d.Note.Volume, d.Note.From)
	}
	if d.lost != nil { // what that host has is left to it
		return ignoreNotFound(d.to.Undefine(ctx, d.UUID))
	}
	err = m.removeFormer(ctx, d)
	if errors.Is(err, host.ErrNotFound) {
		err = Disown(ctx, d.from, d.Note.FromPool, d.Note.Volume, d.Note.Generation)
	}
	if err != nil {
		return fmt.Errorf("what disk %s was on host %s could not be removed: %w", d.Note.Volume, d.Note.From, err)
	}
	if err := ignoreNotFound(d.to.Undefine(ctx, d.UUID)); err != nil {
		return err
	}
	// The last: it tells a disk that has moved from one that is gone.
	return letGo(ctx, d.from, d.Note.FromPool, d.Note.Volume, d.Note.Generation)
}

func (m Mover) removeFormer(ctx context.Context, d *moving) error {
	seen, err := d.former(ctx)
	if err != nil {
		return err
	}
	user, err := d.userHere(ctx, seen.Path)
	if err != nil || user != "" {
		return cmp.Or(err, fmt.Errorf("%w: domain %s there has it", guard.ErrInUse, user))
	}
	bases, err := BasesOf(ctx, d.from, seen.StorageVolume)
	if err != nil && !errors.Is(err, errNoBase) {
		return err
	}
	pool := d.Note.FromPool
	if err := m.Creator.Remove(ctx, d.Note.From, d.from, pool, d.Note.Volume, d.Note.Generation); err != nil {
		return err
	}
	if len(bases) > 0 {
		var names []string
		for _, b := range slices.Backward(bases) {
			names = append(names, path.Base(b.Name))
		}
		if err := m.Creator.CollectGarbage(ctx, d.Note.From, d.from, pool, names...); err != nil {
			return err
		}
	}
	return dropRecord(ctx, d.from, masterUsage(d.Note.Generation))
}

// Withdraw removes what was prepared for a disk that stays where it is, unless a domain has it. ErrCame is the error of one that has come.
func (m Mover) Withdraw(ctx context.Context, key string, i volume.Image) error {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return err
	}
	if d.Note.Phase == came {
		return ErrCame
	}
	if d.lost != nil {
		return d.lost
	}
	users, err := guard.Users(ctx, key, d.to, d.image)
	for _, u := range users {
		if u.Domain != d.Name {
			return d.errHas(u.Domain, key)
		}
	}
	if err != nil {
		return err
	}
	bases, pool := d.Note.Bases, d.Note.Pool
	m.Creator.release(Spec{Pool: pool, Name: d.Note.Volume}.claimKey(key))
	err = d.removeWithVolume(ctx)
	if err == nil && len(bases) > 0 {
		err = m.Creator.CollectGarbage(ctx, key, d.to, pool, bases...)
	}
	if err != nil {
		return err
	}
	return letGo(ctx, d.from, d.Note.FromPool, d.Note.Volume, d.Note.Generation)
}

// MovesWith is the UUID of a machine whose move with a disk to the host of that key is not complete; empty without one.
func (m Mover) MovesWith(ctx context.Context, key string, i volume.Image) (uuid string, err error) {
	d, err := m.find(ctx, key, i)
	if d == nil || err != nil {
		return "", err
	}
	users, err := guard.Users(ctx, key, d.to, d.image)
	for _, u := range users {
		if u.Metadata.To != "" {
			return u.UUID, err
		}
	}
	return "", err
}

// ErrCame is the error of a disk whose content is on its new host.
var ErrCame = errors.New("it is on its new host by now")
