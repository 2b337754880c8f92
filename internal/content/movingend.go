package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

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

// ErrCame is the error of a disk whose content is on its new host.
var ErrCame = errors.New("it is on its new host by now")
