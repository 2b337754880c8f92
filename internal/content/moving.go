package content

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
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

// Begin records that a migration is about to copy a disk to the host of that key: what it leaves when it fails is made again.
func (m Mover) Begin(ctx context.Context, key string, i volume.Image) error {
	d, err := m.must(ctx, key, i)
	if err != nil {
		return err
	}
	return d.setPhase(ctx, begun)
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
