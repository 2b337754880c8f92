package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// found is what both hosts of a move have of a domain. An empty one has nothing.
type found struct {
	source, target Observation
	// arrived tells that the machine is on its target.
	arrived bool
}

// settleTime is how long a migration may go on whose apply was interrupted.
const settleTime = 10 * time.Minute

// settle finds out which of both hosts a machine is on, and waits for a migration that goes on without its apply. A guest that a broken
// migration has left paused on its source goes on there, unless it has been on the target.
func (p pair) settle(ctx context.Context) (found, error) {
	has, err := p.look(ctx)
	if err != nil {
		return has, err
	}
	return p.settled(ctx, has)
}

// settled is settle of what was just seen.
func (p pair) settled(ctx context.Context, has found) (found, error) {
	moves, err := p.isMigrating(ctx, has)
	if err == nil && moves {
		has, err = p.awaitMigration(ctx)
	}
	if err == nil {
		has.arrived, err = has.isOnTarget()
	}
	if err != nil || has.arrived || !has.source.isLeft() {
		return has, err
	}
	if err := p.mayResume(ctx, has); err != nil {
		return has, err
	}
	if err := p.from.host.Resume(ctx, p.uuid); err != nil {
		return has, err
	}
	return p.look(ctx)
}

// mayResume refuses to let a guest go on at its source that may have been elsewhere: only the definition that waits for it on the target
// shows that it has not.
func (p pair) mayResume(ctx context.Context, has found) error {
	s, t := has.source.stored, has.target.stored
	if t == nil || !t.Metadata().Arrives || t.Metadata().ID != s.Metadata().ID {
		return p.from.errMayHaveRun(s.Metadata().To)
	}
	return p.from.CheckHere(ctx, p.uuid)
}

func (m Manager) errMayHaveRun(to string) error {
	return fmt.Errorf("a move to host %s has left its guest paused on host %s, and it may have run elsewhere since: its memory would be "+
		"older than its disks. Give up its memory (virsh destroy), and apply again", to, m.key)
}

func (p pair) awaitMigration(ctx context.Context) (has found, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, errors.New("it is still being migrated: virsh domjobabort breaks that off"))
	defer cancel()
	defer p.from.log.Progress(ctx, "Waiting for a migration that an interrupted apply has begun", map[string]any{"domain": p.uuid})()
	err = p.from.host.AwaitEvery(ctx, time.Second, p.uuid, func(ctx context.Context) (bool, error) {
		if has, err = p.look(ctx); err != nil {
			return false, err
		}
		moves, err := p.isMigrating(ctx, has)
		return !moves, err
	})
	return has, err
}

func (p pair) look(ctx context.Context) (has found, err error) {
	var group errgroup.Group
	see := func(m Manager, at *Observation) {
		group.Go(func() (err error) {
			if *at, err = m.see(ctx, p.uuid); errors.Is(err, host.ErrNotFound) {
				*at, err = Observation{}, nil
			}
			return err
		})
	}
	see(p.from, &has.source)
	see(p.to, &has.target)
	if err := group.Wait(); err != nil {
		return has, err
	}
	if has.source.stored == nil && has.target.stored == nil {
		return has, fmt.Errorf("neither host %s nor host %s has it: %w", p.from.key, p.to.key, host.ErrNotFound)
	}
	return has, nil
}

func (p pair) isMigrating(ctx context.Context, has found) (bool, error) {
	if t := has.target; t.live != nil && t.stored.Metadata().Arrives && t.state.IsLeftByMigration() {
		return true, nil // its libvirtd ends what no one sends to any more
	}
	if has.source.live == nil {
		return false, nil
	}
	moves, err := p.from.host.IsMigrating(ctx, p.uuid)
	return moves, ignoreNotFound(err)
}

// isLeft reports whether the guest was paused by a migration that did not end.
func (at Observation) isLeft() bool {
	return at.live != nil && !at.isRunning() && at.state.IsLeftByMigration() && at.stored.Metadata().To != ""
}

func (at Observation) isRunning() bool { return at.live != nil && at.state.IsRunning() }

// isOnTarget tells from both definitions where a machine is. libvirt replaces the target's before the guest starts there, and a guest that
// has been there must never go on at the source: its memory is older than its disks then.
func (has found) isOnTarget() (bool, error) {
	s, t := has.source, has.target
	came, noted := t.stored != nil && !t.stored.Metadata().Arrives, s.stored != nil && s.stored.Metadata().To != ""
	switch {
	case s.isRunning() && t.isRunning(), s.live != nil && t.live != nil && !noted:
		return false, errors.New("it is on both hosts. Turn the one off at once that is not to be (virsh destroy), and repair its disks " +
			"if both have written to them")
	case t.live != nil && !came:
		return false, errors.New("its prepared definition on the target was started. Turn it off there (virsh destroy)")
	case s.stored == nil:
		return came, nil
	case s.isRunning():
		return false, nil
	case s.live != nil:
		return came && noted, nil
	case t.live == nil && came && !noted:
		return false, errors.New("both hosts have its definition, and on both it is off. Undefine the one that is not to be (virsh " +
			"undefine)")
	}
	return came, nil
}

// canOpen reports whether a host may use all images of a volume.
func canOpen(v volume.Volume, key string) bool {
	for _, i := range v.Images {
		if !slices.Contains(i.Hosts, key) {
			return false
		}
	}
	return true
}

// settleHere completes a move whose record the machine has, or puts it back, before the machine is changed on this host.
func (m Manager) settleHere(ctx context.Context, id string, at Observation) (Observation, error) {
	note := at.stored.Metadata().Move
	if note.To == "" {
		return at, nil
	}
	p := pair{uuid: id}
	var err error
	if p.from, err = m.on(m, note.From); err == nil {
		p.to, err = m.on(m, note.To)
	}
	if err != nil && !note.Arrives { // the other host is no more in hosts
		return m.settleAlone(ctx, id, at)
	}
	if err != nil {
		return at, fmt.Errorf("it was being moved from host %s to host %s: %w", note.From, note.To, err)
	}
	has, err := p.settle(ctx)
	if err != nil {
		return at, err
	}
	is := note.From
	switch {
	case has.arrived:
		is, err = note.To, p.complete(ctx, has)
	case has.source.stored == nil: // its definition was removed there; this one was only prepared
		is, err = m.key, p.withdraw(ctx, has)
	default:
		err = p.stay(ctx, has)
	}
	if err == nil && is != m.key {
		err = fmt.Errorf("it is on host %s: a move between the two was interrupted. Plan again: the plan shows it", is)
	}
	if err != nil {
		return at, err
	}
	return m.see(ctx, id)
}

// Settle completes or reverts an interrupted move of a machine that is on this host; one that is not is an error.
func (m Manager) Settle(ctx context.Context, id string) error {
	_, err := m.seeHere(ctx, id)
	return err
}

// settleAlone ends a move whose other host was removed from hosts, as one that is off for good: the machine is here.
func (m Manager) settleAlone(ctx context.Context, id string, at Observation) (Observation, error) {
	if at.isLeft() {
		return at, m.errMayHaveRun(at.stored.Metadata().To)
	}
	p := pair{to: m, uuid: id}
	has := found{target: at}
	err := p.eachDisk(ctx, has, m.Disks.Came)
	if err == nil {
		err = p.eachDisk(ctx, has, m.Disks.Arrive)
	}
	if err == nil {
		err = m.forgetMove(ctx, id)
	}
	if err != nil {
		return at, err
	}
	return m.see(ctx, id)
}

// IsMoving reports whether a move to or from this host is not complete.
func (at Observation) IsMoving() bool { return at.stored != nil && at.stored.Metadata().To != "" }

// RemoveLeft undefines what other hosts still have of a machine that was moved here outside of Terraform. What has the record of a move is
// left to that.
func (m Manager) RemoveLeft(ctx context.Context, id string) error {
	for _, key := range m.all.Keys {
		if key == m.key {
			continue
		}
		other, err := m.on(m, key)
		if err != nil {
			return err
		}
		at, err := other.see(ctx, id)
		if err != nil || at.live != nil || at.IsMoving() {
			if ignoreNotFound(err) != nil {
				m.log.Warn(ctx, "Whether a definition was left is not known", map[string]any{"host": key, "error": err.Error()})
			}
			continue
		}
		if err := other.host.Undefine(ctx, id); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
