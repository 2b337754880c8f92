package content

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

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
