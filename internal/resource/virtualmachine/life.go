package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// cleanUpTime bounds what is undone after a failure, when the operation's own time may be over.
const cleanUpTime = 30 * time.Second

// domains is what a machine's life needs of its host.
type domains interface {
	LookupByName(ctx context.Context, name string) (uuid string, err error)
	Define(ctx context.Context, xml string) (uuid string, err error)
	StoredXML(ctx context.Context, uuid string) (string, error)
	LiveXML(ctx context.Context, uuid string) (string, error)
	SavedXML(ctx context.Context, uuid string) (string, error)
	State(ctx context.Context, uuid string) (host.State, error)
	IsPersistent(ctx context.Context, uuid string) (bool, error)
	CheckpointedDisks(ctx context.Context, uuid string) (targets []string, err error)
	DiskError(ctx context.Context, uuid string) (target string, noSpace bool, err error)
	Start(ctx context.Context, uuid string) error
	Stop(ctx context.Context, uuid string, force bool) error
	Undefine(ctx context.Context, uuid string) error

	guard.Host
	guard.Waiter
	content.Locator
	content.OpenFiles
	KnownOverlays(ctx context.Context, of string) ([]host.StorageVolume, error)
	content.Files
	AwaitDevice(ctx context.Context, uuid, target string) error
	HasLength(ctx context.Context, pool, name string, bytes int64) (bool, error)
	chains
	Attach(ctx context.Context, uuid, deviceXML string) error
	ChangeInterface(ctx context.Context, uuid, deviceXML string) error
	Addresses(ctx context.Context, uuid string, agent bool) map[string][]string
	AwaitEvery(ctx context.Context, interval time.Duration, uuid string, done func(context.Context) (bool, error)) error
	SetLiveMetadata(ctx context.Context, uuid, namespace, prefix, element string) error
	ChangeDevice(ctx context.Context, uuid, deviceXML string) error
	GrowDevice(ctx context.Context, uuid, target string, bytes int64) error
	SetLiveNames(ctx context.Context, uuid, title, description string) error
	Autostart(ctx context.Context, uuid string) (bool, error)
	SetAutostart(ctx context.Context, uuid string, on bool) error
	SetVCPUs(ctx context.Context, uuid string, n uint) error
	SetMemory(ctx context.Context, uuid string, kib uint, there func(liveXML string) (bool, error)) error
}

// life is a machine's life on one host: from a definition to its end. Terraform's values stay outside.
type life struct {
	host  domains
	key   string // the host's
	owner string
	// hosts are all hosts of the configuration, by key: a disk may be in use on another one.
	hosts func(key string) (guard.Waiter, error)
	// all are the same hosts, to which the machine may have been migrated by hand.
	all guard.Hosts
	// mayRestart tells that a guest which does not acknowledge an unplug may be restarted without the device.
	mayRestart bool
}

// define makes the domain, marked as being created. A domain that has the name already is gone on with only when an
// interrupted creation of the same owner left it; runs tells that it was found running.
func (l life) define(ctx context.Context, want domainxml.Machine) (id string, runs bool, err error) {
	want.Mark = domainxml.Mark{Owner: l.owner, Phase: domainxml.Creating}
	if err := l.checkBacking(ctx, want); err != nil {
		return "", false, err
	}
	there, err := l.host.LookupByName(ctx, want.Name)
	if err == nil {
		return l.goOn(ctx, there, want)
	}
	if !errors.Is(err, host.ErrNotFound) {
		return "", false, err
	}
	if err := l.checkLogs(ctx, domainxml.Machine{}, want); err != nil {
		return "", false, err
	}
	// The UUID is made here, so that a domain whose host answers no more can be found again.
	want.UUID = uuid.NewString()
	text, err := domainxml.Build(want.WithMACs(domainxml.Machine{}, newMAC))
	if err != nil {
		return "", false, err
	}
	made, err := l.host.Define(ctx, text)
	if err == nil {
		return made, false, nil
	}
	if undo := l.takeBack(ctx, want.UUID); undo != nil {
		err = fmt.Errorf("%w\n\nLeft behind, perhaps: the domain, with the UUID %s: %w", err, want.UUID, undo)
	}
	return "", false, err
}

// goOn makes what an interrupted creation left what is wanted now.
func (l life) goOn(ctx context.Context, uuid string, want domainxml.Machine) (id string, runs bool, err error) {
	is, active, err := l.look(ctx, uuid)
	if err != nil {
		return "", false, err
	}
	if l.owner == "" || is.Mark != want.Mark {
		return "", false, fmt.Errorf("a domain of this name (UUID %s) is there already and was not made by this configuration%s. "+
			"It was left alone. To manage it from here, run: terraform import <address of this resource> <host>/%s", uuid, l.inAnotherState(is.Mark), is.Name)
	}
	if err := l.checkHere(ctx, uuid); err != nil {
		return "", false, err
	}
	if err := refuseExternal(is, want); err != nil {
		return "", false, err
	}
	if err := l.checkLogs(ctx, is, want); err != nil {
		return "", false, err
	}
	if want.HardwareMatches(is) {
		if err := l.checkOpenFiles(ctx, uuid, want, false); err != nil {
			return "", false, err
		}
		_, err := l.become(ctx, uuid, want, active, false)
		return uuid, active, err
	}
	// The configuration has changed since to what no redefinition can make of it.
	if err := l.checkExchanged(ctx, uuid, want.Name); err != nil {
		return "", false, err
	}
	if err := l.end(ctx, uuid, true); err != nil {
		return "", false, err
	}
	return l.define(ctx, want)
}

// inAnotherState says so of a machine that has this owner.
func (l life) inAnotherState(mark domainxml.Mark) string {
	if mark.Phase == "" || l.owner == "" || mark.Owner != l.owner {
		return ""
	}
	return fmt.Sprintf(": it is a machine of the same owner %q, which is in another state, as after the copy of a configuration's folder "+
		"(give each an owner of its own), or whose state was lost", l.owner)
}

// redefine writes want into the stored definition.
func (l life) redefine(ctx context.Context, uuid string, want domainxml.Machine) error {
	stored, err := l.host.StoredXML(ctx, uuid)
	if err != nil {
		return err
	}
	is, err := domainxml.Parse(stored)
	if err == nil {
		err = refuseExternal(is, want) // also what has come since it was asked
	}
	if err != nil {
		return err
	}
	text, err := domainxml.Update(stored, want.WithMACs(is, newMAC))
	if err != nil {
		return err
	}
	_, err = l.host.Define(ctx, text)
	return err
}

// start makes the domain run; one that runs already is left alone.
func (l life) start(ctx context.Context, uuid string) error {
	state, err := l.host.State(ctx, uuid)
	if err != nil || state.Active {
		return err
	}
	return l.host.Start(ctx, uuid)
}

// finish marks the domain as wholly created.
func (l life) finish(ctx context.Context, uuid string, want domainxml.Machine) error {
	want.Mark = domainxml.Mark{Owner: l.owner, Phase: domainxml.Ready}
	return l.redefine(ctx, uuid, want)
}

// change makes an existing domain what is wanted. First it lets go of what it loses, then it takes what it gains. pending
// is what the running guest goes on without; started tells that it was booted.
func (l life) change(ctx context.Context, uuid string, want domainxml.Machine, power power) (pending []string, started bool, err error) {
	l.mayRestart = power.on && power.restart
	if err := l.checkChains(ctx, uuid, want, !power.on && power.force); err != nil {
		return nil, false, err
	}
	was, err := l.stored(ctx, uuid)
	if err == nil {
		err = l.checkLogs(ctx, was, want)
	}
	if err != nil {
		return nil, false, err
	}
	if power.on {
		if err := l.checkOpenFiles(ctx, uuid, want, power.restart); err != nil {
			return nil, false, err
		}
	}
	if err := l.persist(ctx, uuid); err != nil {
		return nil, false, err
	}
	if !power.on {
		if err := l.stop(ctx, uuid, power.force); err != nil {
			return nil, false, err
		}
	}
	is, active, err := l.look(ctx, uuid)
	if err != nil {
		return nil, false, err
	}
	want = want.SizedAs(is)
	want.Mark = domainxml.Mark{Owner: l.owner, Phase: domainxml.Ready}
	if is.Mark.Phase != "" {
		want.Mark.Owner = is.Mark.Owner // a changed owner concerns new machines only
	}
	if !active {
		if err := l.checkSaved(ctx, uuid, want); err != nil {
			return nil, false, err
		}
	}
	if is.Autostart != want.Autostart {
		if err := l.host.SetAutostart(ctx, uuid, want.Autostart); err != nil {
			return nil, false, err
		}
	}
	starts := power.on && !active
	pending, err = l.become(ctx, uuid, want, active, starts)
	switch {
	case errors.Is(err, host.ErrDetachRefused) && l.mayRestart:
		return nil, true, l.restartWithout(ctx, uuid, want, power.force, err)
	case err != nil:
		return nil, false, withWayOut(err)
	case starts:
		return nil, true, l.host.Start(ctx, uuid)
	case len(pending) > 0 && power.restart:
		return nil, true, l.restart(ctx, uuid, want, power.force)
	}
	return pending, false, nil
}

// changesLive is what can be put right when a saved guest has been started.
var changesLive = []string{"memory", "title", "description"}

// checkSaved refuses to change a machine that is saved with its memory: its next start goes on with what it had then, and
// what the guest knows of its disks would be wrong if they were others.
func (l life) checkSaved(ctx context.Context, uuid string, want domainxml.Machine) error {
	saved, err := l.host.SavedXML(ctx, uuid)
	if err != nil || saved == "" {
		return err
	}
	differs, err := domainxml.Pending(saved, want)
	differs = slices.DeleteFunc(differs, func(what string) bool { return slices.Contains(changesLive, what) })
	if err != nil || len(differs) == 0 {
		return err
	}
	return fmt.Errorf("its guest is saved with its memory (virsh managedsave), and its next start goes on with what it had then. That can't "+
		"be changed: %s. Start it before (running = true and nothing else), or give up what its memory had, as after a power cut: "+
		"virsh managedsave-remove %s", strings.Join(differs, ", "), want.Name)
}

// become makes the stored definition, and an active domain, what is wanted. That is also how the machine tells others what
// it is about to use; when it may not, the stored definition keeps the disks that it had.
func (l life) become(ctx context.Context, uuid string, want domainxml.Machine, active, starts bool) (pending []string, err error) {
	was, err := l.stored(ctx, uuid)
	if err != nil {
		return nil, err
	}
	var gone lost
	defer func() {
		if err != nil {
			err = gone.explain(want, err)
		}
	}()
	if active {
		if gone, err = l.lose(ctx, uuid, want); err != nil {
			return nil, err
		}
		if err := l.unlock(ctx, uuid, want); err != nil {
			return nil, err
		}
	}
	taken, err := l.takes(ctx, uuid, was, want, active)
	if err != nil {
		return nil, err
	}
	if err := l.redefine(ctx, uuid, want.WithTentative(taken)); err != nil {
		return nil, err
	}
	if err = l.checkTaken(ctx, want, taken); err == nil {
		err = l.enter(ctx, uuid, want, asks(taken, want, starts))
	}
	if err != nil {
		return nil, l.withdraw(ctx, uuid, was, want, taken, active, err)
	}
	if len(taken) > 0 {
		if err := l.redefine(ctx, uuid, want); err != nil {
			return nil, err
		}
	}
	if !active {
		return nil, nil
	}
	if err = l.gainInterfaces(ctx, uuid, want); err == nil {
		pending, err = l.gain(ctx, uuid, was, want)
	}
	if err != nil {
		return nil, l.putBack(ctx, uuid, was, want, err)
	}
	return append(pending, domainxml.Forgets(was, want)...), nil
}

// end stops the domain and undefines it.
func (l life) end(ctx context.Context, uuid string, force bool) error {
	err := l.stop(ctx, uuid, force)
	if err == nil {
		err = l.reclaim(ctx, uuid)
	}
	if err == nil {
		err = l.host.Undefine(ctx, uuid)
	}
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}

// reclaim gives a domain what it has lost and what libvirt still keeps something of, as it removes that only with its owner.
func (l life) reclaim(ctx context.Context, uuid string) error {
	stored, err := l.host.StoredXML(ctx, uuid)
	if err != nil {
		return err
	}
	text, err := domainxml.Reclaim(stored)
	if err == nil && text != "" {
		_, err = l.host.Define(ctx, text)
	}
	return err
}

// takeBack ends a domain whose creation failed, also when the operation's time is over.
func (l life) takeBack(ctx context.Context, uuid string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	return l.end(ctx, uuid, true)
}

// look reads the stored definition, since that is what the configuration describes, with how the running machine's devices
// differ from it, their addresses, and whether the domain is active.
func (l life) look(ctx context.Context, uuid string) (is domainxml.Machine, active bool, err error) {
	if is, err = l.stored(ctx, uuid); err != nil {
		return is, false, err
	}
	if is.Autostart, err = l.host.Autostart(ctx, uuid); err != nil {
		return is, false, err
	}
	state, err := l.host.State(ctx, uuid)
	is.State = state.String()
	if err != nil || !state.Active {
		l.completeExternal(ctx, uuid, is.External)
		return is, false, err
	}
	live, err := l.host.LiveXML(ctx, uuid)
	if err != nil {
		return is, true, err
	}
	if err := is.Compare(live); err != nil {
		return is, true, err
	}
	l.completeExternal(ctx, uuid, is.External)
	l.reach(ctx, uuid, &is)
	return is, true, nil
}

func (l life) stored(ctx context.Context, uuid string) (domainxml.Machine, error) {
	text, err := l.host.StoredXML(ctx, uuid)
	if err != nil {
		return domainxml.Machine{}, err
	}
	is, err := domainxml.Parse(text)
	return is.WithoutTentative(), err
}
