package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Move is how a machine gets to another host.
type Move struct {
	// Offline shuts a running guest down, and leaves it off; Force forces it off if it does not shut down.
	Offline, Force bool
	// Migration is how a guest is moved that goes on running.
	host.Migration
}

// MoveFrom brings a machine from another host to this one. It goes on from wherever an earlier move was interrupted; a machine that is here
// already is only completed. want is the machine as it is to be here: disks that it does not have any more are taken from it before.
//
// After an error the machine is on exactly one of both hosts, unless one does not answer: then its guest may be paused until the next call.
func (m Manager) MoveFrom(ctx context.Context, source, id string, want domainxml.Machine, how Move) error {
	from, err := m.on(m, source)
	if err != nil {
		return err
	}
	p := pair{from: from, to: m, uuid: id, there: domainxml.Arrival{Volumes: map[string]volume.Volume{}}}
	has, err := p.look(ctx)
	if err == nil {
		has, err = p.settleOther(ctx, has)
	}
	if err == nil {
		has, err = p.settled(ctx, has)
	}
	if err != nil {
		return err
	}
	if has.arrived {
		return p.complete(ctx, has)
	}
	at, is, err := p.leave(ctx, has, want, how.Offline)
	if err == nil {
		err = p.check(ctx, at, is)
	}
	if err != nil {
		return err
	}
	p.note = domainxml.Move{From: source, To: m.key, ID: uuid.NewString()}
	if err := p.move(ctx, at, is, how); err != nil {
		return p.putBack(ctx, err, is, at.live != nil)
	}
	return nil
}

// settleOther settles an interrupted move that has brought the machine to the source, or was to bring it to a third host.
func (p pair) settleOther(ctx context.Context, has found) (found, error) {
	if !has.source.IsMoving() {
		return has, nil
	}
	if note := has.source.stored.Metadata().Move; note.From == p.from.key && note.To == p.to.key {
		return has, nil
	}
	if _, err := p.from.settleHere(ctx, p.uuid, has.source); err != nil {
		return has, err
	}
	return p.look(ctx)
}

// pair are the managers of both hosts of a move.
type pair struct {
	from, to Manager
	uuid     string
	// note is the record of the present move.
	note domainxml.Move
	// there is what the machine has otherwise on the target, and along are the keys of the disks that are copied there.
	there domainxml.Arrival
	along []string
}

// ErrMoving is the error of a machine that another apply moves.
var ErrMoving = errors.New("another apply moves it at the same time")

// move moves a machine that is on its source.
//
// Both stored definitions have the record of the move from the beginning on, so that any later apply can complete it or put it back, and so
// that other machines see the storage in use on both: the guard is asked after that, as for a new machine.
func (p *pair) move(ctx context.Context, at Observation, is domainxml.Machine, how Move) (err error) {
	if err := p.announce(ctx, at); err != nil {
		return err
	}
	if err := p.acquire(ctx, is); err != nil {
		return err
	}
	if at.live != nil && how.Offline {
		if at, err = p.from.stopped(ctx, p.uuid, at, how.Force); err != nil {
			return err
		}
	}
	if at.live == nil {
		err = p.carry(ctx)
	} else {
		err = p.migrate(ctx, at, is, how)
	}
	if err != nil {
		return err
	}
	has, err := p.settle(ctx)
	if err == nil && !has.arrived {
		err = fmt.Errorf("it is still on host %s, although libvirt called it migrated", p.from.key)
	}
	if err != nil {
		return err
	}
	return p.complete(ctx, has)
}

// announce records the move on both hosts. The source does not start the domain by itself any more: the guest may run on the target then.
func (p *pair) announce(ctx context.Context, at Observation) (err error) {
	if p.note.Autostart, err = p.from.host.Autostart(ctx, p.uuid); err != nil {
		return err
	}
	starts := p.note.Autostart
	p.note.Autostart = starts || at.stored.Metadata().Autostart // an interrupted move has taken it
	if err := p.from.note(ctx, at.stored, p.note); err != nil {
		return err
	}
	if starts {
		if err := p.from.host.SetAutostart(ctx, p.uuid, false); err != nil {
			return err
		}
	}
	arrives := p.note
	arrives.Arrives = true
	return p.define(ctx, at.stored, arrives)
}

// define stores the source's definition on the target, with a record.
func (p pair) define(ctx context.Context, of *domainxml.Domain, is domainxml.Move) error {
	text, err := of.WithMove(is, p.there)
	if err == nil {
		_, err = p.to.host.Define(ctx, text)
	}
	return err
}

// note changes the record in a definition of this host.
func (m Manager) note(ctx context.Context, of *domainxml.Domain, is domainxml.Move) error {
	text, err := of.WithMove(is, domainxml.Arrival{})
	if err == nil {
		err = m.host.Redefine(ctx, text)
	}
	return err
}

// acquire asks all hosts whether the machine may use its storage on the target, too.
func (p pair) acquire(ctx context.Context, is domainxml.Machine) error {
	is = p.asThere(is)
	keys := slices.Sorted(maps.Keys(is.Disks))
	if err := p.to.recognize(ctx, is, keys); err != nil {
		return err
	}
	if err := content.Recheck(ctx, p.to.host, used(is, keys)); err != nil {
		return err
	}
	e := guard.Request{
		Host: p.to.key, From: p.from.key, Name: is.Name, UUID: p.uuid, Owner: p.to.owner, Hosts: p.to.hosts, Images: used(is, keys),
	}
	for _, key := range is.BoundFolders() {
		e.Images = append(e.Images, is.Filesystems[key].Volume.Images...)
	}
	return p.win(ctx, func(ctx context.Context) error {
		if len(e.Images) == 0 {
			return nil
		}
		_, err := guard.Acquire(ctx, e)
		return err
	})
}

// asThere is the machine with its volumes on the target.
func (p pair) asThere(is domainxml.Machine) domainxml.Machine {
	is.Disks = maps.Clone(is.Disks)
	for key, v := range p.there.Volumes {
		d := is.Disks[key]
		d.Volume = v
		is.Disks[key] = d
	}
	if is.Boot != nil && p.there.Kernel != "" {
		is.Boot = &domainxml.Boot{Kernel: p.there.Kernel, Initrd: p.there.Initrd, Cmdline: is.Boot.Cmdline}
	}
	if p.there.FWCfg != nil {
		is.FWCfg = p.there.FWCfg
	}
	return is
}

// rivalTime is how long a move waits for another one of the same machine that has to withdraw.
const rivalTime = 30 * time.Second

// win calls acquire while another apply moves the machine to a third host. Of two, the one goes on whose record the source has.
func (p pair) win(ctx context.Context, acquire func(context.Context) error) (err error) {
	patient, cancel := context.WithTimeout(ctx, rivalTime)
	defer cancel()
	try := func(context.Context) (bool, error) {
		stored, failed := p.from.ReadStored(ctx, p.uuid)
		if errors.Is(failed, host.ErrNotFound) || failed == nil && stored.Metadata().ID != p.note.ID {
			failed = ErrMoving
		}
		if failed != nil {
			return false, failed
		}
		err = acquire(ctx)
		return !errors.Is(err, guard.ErrMovesElsewhere), nil
	}
	won, failed := try(ctx)
	if failed == nil && !won {
		failed = p.from.host.AwaitEvery(patient, time.Second, p.uuid, try)
	}
	if err != nil {
		return err
	}
	return failed
}

// migrate moves the guest of a running machine.
func (p pair) migrate(ctx context.Context, at Observation, is domainxml.Machine, how Move) error {
	how.Name = is.Name
	for key, d := range is.Disks {
		if _, goes := p.there.Volumes[key]; !goes && len(d.Volume.Images) > 0 && d.Volume.Images[0].Type != "network" {
			how.SharedFiles = true
		}
	}
	if err := p.takeAlong(ctx, at, is, &how.Migration); err != nil {
		return err
	}
	p.from.log.Info(ctx, "Migrating the guest", map[string]any{"machine": is.Name, "from": p.from.key, "to": p.to.key})
	done := p.from.log.Progress(ctx, "Migrating the guest", map[string]any{"machine": is.Name, "from": p.from.key, "to": p.to.key})
	defer done()
	how.Report = func(is host.Progress) {
		p.from.log.Info(ctx, "Migrating the guest", map[string]any{"bytes": is.Done, "of": is.All})
	}
	return p.from.host.MigrateTo(ctx, p.to.key, p.uuid, how.Migration)
}

// takeAlong has a migration copy the disks that go along.
func (p pair) takeAlong(ctx context.Context, at Observation, is domainxml.Machine, how *host.Migration) error {
	if p.there.IsEmpty() {
		return nil
	}
	for _, key := range p.along {
		how.Disks = append(how.Disks, is.Disks[key].Target)
		if err := p.to.Disks.Begin(ctx, p.to.key, p.there.Volumes[key].Images[0]); err != nil {
			return fmt.Errorf("disk %s: %w", key, err)
		}
	}
	text, err := p.from.host.MigratableXML(ctx, p.uuid)
	if err != nil {
		return err
	}
	live, err := domainxml.Read(text)
	if err == nil {
		how.Running, err = live.As(p.there)
	}
	if err == nil {
		how.Stored, err = at.stored.WithMove(p.note, p.there)
	}
	return err
}

// bring copies the disks that go along with a machine that is off. check refuses those that were written to since.
func (p pair) bring(ctx context.Context) (check func() error, err error) {
	brought := map[string]string{}
	for _, key := range p.along {
		done := p.from.log.Progress(ctx, "Copying a disk", map[string]any{"disk": key, "from": p.from.key, "to": p.to.key})
		brought[key], err = p.to.Disks.Bring(ctx, p.to.key, p.there.Volumes[key].Images[0], p.to.reportOf(ctx, key))
		done()
		if err != nil {
			return nil, fmt.Errorf("disk %s: %w", key, err)
		}
	}
	return func() error {
		for key, before := range brought {
			if err := p.to.Disks.CheckBrought(ctx, p.to.key, p.there.Volumes[key].Images[0], before); err != nil {
				return fmt.Errorf("disk %s: %w", key, err)
			}
		}
		return nil
	}, nil
}

// carry moves a machine that is off: its disks and its state, then its definition. From the definition on, it is the target's.
func (p pair) carry(ctx context.Context) error {
	check, err := p.bring(ctx)
	if err != nil {
		return err
	}
	at, err := p.from.see(ctx, p.uuid)
	if err != nil {
		return err
	}
	for _, f := range at.stored.StateFolders() {
		files, err := p.from.host.ReadStateFiles(ctx, f.Path, f.Names...)
		if err == nil && len(files) > 0 {
			err = p.to.host.WriteStateFiles(ctx, f.Path, files)
		}
		if err != nil {
			return err
		}
	}
	if at, err = p.from.see(ctx, p.uuid); err != nil {
		return err
	}
	if at.live != nil {
		return fmt.Errorf("it was started on host %s meanwhile", p.from.key)
	}
	if at.stored.Metadata().ID != p.note.ID {
		return ErrMoving
	}
	if err := check(); err != nil {
		return err
	}
	return p.define(ctx, at.stored, p.note)
}
