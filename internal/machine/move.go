package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
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
	p := pair{from: from, to: m, uuid: id}
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
		err = p.migrate(ctx, is, how)
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

// leave takes from the machine what can't go along or is not wanted any more, and makes it virtclaim's if it was imported just now. It
// returns the machine that moves.
func (p pair) leave(ctx context.Context, has found, want domainxml.Machine, offline bool) (at Observation, is domainxml.Machine,
	err error,
) {
	at = has.source
	if at.stored == nil {
		return at, is, fmt.Errorf("host %s does not have it any more, and host %s was only prepared for it: %w", p.from.key, p.to.key,
			host.ErrNotFound)
	}
	if is, err = at.machine(); err != nil {
		return at, is, err
	}
	goes, stays := p.goes(is, want)
	if len(stays) == 0 && at.stored.Metadata().Phase == domainxml.Ready {
		return at, goes, nil
	}
	_, pending, _, err := p.from.Update(ctx, p.uuid, goes, Power{On: at.live != nil})
	pending = slices.DeleteFunc(pending, func(what string) bool { return !slices.Contains(stays, what) })
	if err == nil && len(pending) > 0 && !offline {
		err = fmt.Errorf("its guest has to release this before it moves: %s. Or move it with migration = { mode = \"offline\" }",
			strings.Join(pending, ", "))
	}
	if err == nil {
		at, err = p.from.see(ctx, p.uuid)
	}
	return at, goes, err
}

// goes is the machine without the disks, media and filesystems that stay behind, as changes that may be pending. Volumes that both know are
// as the configuration has them: a binding may have got the target just now.
func (p pair) goes(is, want domainxml.Machine) (goes domainxml.Machine, stays []string) {
	goes = is
	goes.Disks, goes.Filesystems = map[string]domainxml.Disk{}, map[string]domainxml.Filesystem{}
	for key, d := range is.Disks {
		w, wanted := want.Disks[key]
		if wanted && sameImages(d.Volume, w.Volume) {
			d.Volume = w.Volume
		}
		if !wanted {
			stays = append(stays, "disk "+key)
			continue
		}
		if domainxml.IsDrive(d.Device) && len(d.Volume.Images) > 0 && !canOpen(d.Volume, p.to.key) { // the target has it as another file
			d.Volume, stays = volume.Volume{}, append(stays, "disk "+key)
		}
		goes.Disks[key] = d
	}
	for key, f := range is.Filesystems {
		if _, wanted := want.Filesystems[key]; wanted {
			goes.Filesystems[key] = f
			continue
		}
		stays = append(stays, "filesystems")
	}
	return goes, stays
}

func sameImages(a, b volume.Volume) bool {
	return slices.EqualFunc(a.Images, b.Images, func(a, b volume.Image) bool { return a.Name == b.Name && !volume.IsRemade(a, b) })
}

// check refuses what would be lost by a move, or stop it.
func (p pair) check(ctx context.Context, at Observation, is domainxml.Machine) error {
	for _, key := range slices.Sorted(maps.Keys(is.Disks)) {
		for _, side := range []string{p.from.key, p.to.key} {
			if !canOpen(is.Disks[key].Volume, side) {
				return fmt.Errorf("its disk %s is not there for host %s", key, side)
			}
		}
	}
	for _, f := range at.stored.StateFolders() {
		if !strings.HasPrefix(f.Path, "/var/lib/libvirt/") {
			return fmt.Errorf("its firmware's variables are in %s, which both hosts may share. Put them where libvirt does by itself "+
				"(/var/lib/libvirt/qemu/nvram)", f.Path)
		}
	}
	if err := p.from.checkChains(ctx, p.uuid, at, is, false); err != nil {
		return err
	}
	var saved string
	var snapshots []string
	var other string
	var group errgroup.Group
	group.Go(func() (err error) { saved, err = p.from.host.SavedXML(ctx, p.uuid); return err })
	group.Go(func() (err error) { snapshots, err = p.from.host.Snapshots(ctx, p.uuid); return err })
	group.Go(func() (err error) {
		if other, err = p.to.host.LookupByName(ctx, is.Name); errors.Is(err, host.ErrNotFound) {
			other, err = p.uuid, nil
		}
		return err
	})
	err := group.Wait()
	if err == nil && saved != "" && at.live == nil {
		return fmt.Errorf("its guest is saved with its memory (virsh managedsave) on host %s, and that can't be moved. Start it there "+
			"before, or give up what its memory had: virsh managedsave-remove %s", p.from.key, is.Name)
	}
	if err != nil {
		return err
	}
	if len(snapshots) > 0 {
		return fmt.Errorf("it has snapshots on host %s, which can't be moved. Delete them before (virsh snapshot-list %s)", p.from.key,
			is.Name)
	}
	if other != p.uuid {
		return fmt.Errorf("host %s has another domain of the name %s (UUID %s). Rename or remove one of the two", p.to.key, is.Name, other)
	}
	return p.to.checkLogs(ctx, domainxml.Machine{}, is)
}

// announce records the move on both hosts. The source does not start the domain by itself any more: it may run on the target by then.
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
	text, err := of.WithMove(is)
	if err == nil {
		_, err = p.to.host.Define(ctx, text)
	}
	return err
}

// note changes the record in a definition of this host.
func (m Manager) note(ctx context.Context, of *domainxml.Domain, is domainxml.Move) error {
	text, err := of.WithMove(is)
	if err == nil {
		err = m.host.Redefine(ctx, text)
	}
	return err
}

// acquire asks all hosts whether the machine may use its storage on the target, too.
func (p pair) acquire(ctx context.Context, is domainxml.Machine) error {
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
func (p pair) migrate(ctx context.Context, is domainxml.Machine, how Move) error {
	how.Name = is.Name
	how.SharedFiles = slices.ContainsFunc(slices.Collect(maps.Values(is.Disks)), func(d domainxml.Disk) bool {
		return len(d.Volume.Images) > 0 && d.Volume.Images[0].Type != "network"
	})
	p.from.log.Info(ctx, "Migrating the guest", map[string]any{"machine": is.Name, "from": p.from.key, "to": p.to.key})
	done := p.from.log.Progress(ctx, "Migrating the guest", map[string]any{"machine": is.Name, "from": p.from.key, "to": p.to.key})
	defer done()
	how.Report = func(is host.Progress) {
		p.from.log.Info(ctx, "Migrating the guest", map[string]any{"bytes": is.Done, "of": is.All})
	}
	return p.from.host.MigrateTo(ctx, p.to.key, p.uuid, how.Migration)
}

// carry moves a machine that is off: its state, then its definition. From the definition on, it is the target's.
func (p pair) carry(ctx context.Context) error {
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
	return p.define(ctx, at.stored, p.note)
}

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
	if err := p.clear(ctx, has); err != nil {
		return err
	}
	return p.to.forgetMove(ctx, p.uuid)
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
