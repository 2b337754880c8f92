package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// putBack removes the record of a move that has failed, and the definition on the target, unless the machine is there after all. A guest
// that was shut down for it is started again.
func (p pair) putBack(ctx context.Context, cause error, is domainxml.Machine, ran bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackTime)
	defer cancel()
	has, err := p.settle(ctx)
	switch {
	case errors.Is(err, host.ErrNotFound): // another apply has moved it to a third host
		err = nil
	case err != nil:
	case has.arrived:
		if err = p.complete(ctx, has); err == nil {
			return nil
		}
	case has.source.stored == nil, has.source.stored.Metadata().ID != p.note.ID:
		err = p.withdraw(ctx, has)
	default:
		if err = p.stay(ctx, has); err == nil && ran && has.source.live == nil {
			err = p.from.AcquireAndStart(ctx, p.uuid, is, true)
		}
	}
	if err != nil {
		return fmt.Errorf("%w\n\nThe move could not be put back; the next apply goes on with it: %w", cause, err)
	}
	return cause
}

// putBackTime is how long a guest may take to go on, and its hosts to answer.
const putBackTime = 2 * time.Minute

// withdraw removes the definition of this move from the target, if the domain has never been there.
func (p pair) withdraw(ctx context.Context, has found) error {
	t := has.target.stored
	if has.target.live != nil || t == nil || !t.Metadata().Arrives || p.note.ID != "" && t.Metadata().ID != p.note.ID {
		return nil
	}
	return ignoreNotFound(p.to.host.Undefine(ctx, p.uuid))
}

func ignoreNotFound(err error) error {
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}

// stay ends a move of a machine that is on its source.
func (p pair) stay(ctx context.Context, has found) error {
	if has.target.stored != nil && has.target.live == nil {
		if err := ignoreNotFound(p.to.host.Undefine(ctx, p.uuid)); err != nil {
			return err
		}
	}
	return p.from.forgetMove(ctx, p.uuid)
}

// forgetMove removes the record of a move, if the machine has one, and has the host start it again by itself if its host did before.
func (m Manager) forgetMove(ctx context.Context, id string) error {
	stored, err := m.ReadStored(ctx, id)
	if err != nil || stored.Metadata().Move == (domainxml.Move{}) {
		return ignoreNotFound(err)
	}
	if stored.Metadata().Autostart {
		if err := m.host.SetAutostart(ctx, id, true); err != nil {
			return err
		}
	}
	return m.note(ctx, stored, domainxml.Move{})
}

// complete ends a move of a machine that is on its target: nothing stays behind on the source.
func (p pair) complete(ctx context.Context, has found) error {
	ctx, cancel := revert.Extend(ctx)
	defer cancel()
	if has.source.live != nil { // paused: settle has seen it
		if err := ignoreNotFound(p.from.host.StopCopier(ctx, p.uuid)); err != nil {
			return err
		}
	}
	if err := p.eachDisk(ctx, has, p.to.Disks.Came); err != nil {
		return err
	}
	if err := p.clear(ctx, has); err != nil {
		return err
	}
	if err := p.eachDisk(ctx, has, p.to.Disks.Arrive); err != nil {
		return err
	}
	return p.to.forgetMove(ctx, p.uuid)
}

// eachDisk calls f with each disk of a storage pool that the machine has on its target.
func (p pair) eachDisk(ctx context.Context, has found, f func(ctx context.Context, key string, i volume.Image) error) error {
	for _, a := range has.target.stored.Attached() {
		if len(a.Volume.Images) == 0 || !a.Volume.Images[0].IsDisk() {
			continue
		}
		if err := f(ctx, p.to.key, a.Volume.Images[0]); err != nil {
			return err
		}
	}
	return nil
}

// clear undefines what the source still has of the domain, or else the state that libvirt leaves there.
func (p pair) clear(ctx context.Context, has found) error {
	if has.source.stored == nil {
		text, err := has.target.stored.Remains()
		if err != nil || text == "" {
			return err
		}
		other, err := p.from.host.LookupByName(ctx, has.target.stored.Name())
		if err == nil && other != p.uuid {
			p.from.Warn("What a machine has left could not be removed", fmt.Sprintf("Host %s has another domain of the name %s by now. "+
				"The variables of the moved machine's firmware stay there.", p.from.key, has.target.stored.Name()))
			return nil
		}
		if _, err := p.from.host.Define(ctx, text); err != nil {
			return err
		}
	}
	return ignoreNotFound(p.from.host.Undefine(ctx, p.uuid))
}
