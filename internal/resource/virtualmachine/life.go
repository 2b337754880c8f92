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

// domains are the calls of a host that life needs.
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

// life manages a machine on one host, from its definition to its end. It does not use Terraform's types.
type life struct {
	host  domains
	key   string // the host's
	owner string
	// creation identifies this apply while it creates a machine.
	creation string
	// hosts are all hosts of the configuration, by key: a disk may be in use on another one.
	hosts func(key string) (guard.Waiter, error)
	// all are the same hosts: the machine may have been migrated to one of them outside of Terraform.
	all guard.Hosts
	// mayRestart allows the restart, without the device, of a guest that does not acknowledge an unplug.
	mayRestart bool
}

// newCreation is a random identifier of a creation.
func newCreation() string { return uuid.NewString() }

// define defines the domain, marked as being created. An existing domain of that name is used only if an interrupted creation of
// the same owner has left it; runs reports that it was running.
func (l life) define(ctx context.Context, want domainxml.Machine) (id string, runs bool, err error) {
	want.Mark = domainxml.Mark{Owner: l.owner, Phase: domainxml.Creating, Creation: l.creation}
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
	// The UUID is generated here, so that the domain can be found again if the host stops answering.
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

// goOn changes what an interrupted creation has left to the present configuration.
func (l life) goOn(ctx context.Context, uuid string, want domainxml.Machine) (id string, runs bool, err error) {
	is, active, err := l.look(ctx, uuid)
	if err != nil {
		return "", false, err
	}
	if l.owner == "" || is.Mark.Owner != l.owner || is.Mark.Phase != domainxml.Creating {
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
	// The configuration has changed since, in attributes that require a new domain.
	if err := l.checkExchanged(ctx, uuid, want.Name); err != nil {
		return "", false, err
	}
	if err := l.end(ctx, uuid, true); err != nil {
		return "", false, err
	}
	return l.define(ctx, want)
}

// inAnotherState is the error of a machine of the same owner that another state has.
func (l life) inAnotherState(mark domainxml.Mark) string {
	if mark.Phase == "" || l.owner == "" || mark.Owner != l.owner {
		return ""
	}
	return fmt.Sprintf(": it is a machine of the same owner %q, which is in another state, as after the copy of a configuration's folder "+
		"(give each an owner of its own), or whose state was lost", l.owner)
}

// errTakenOver is the error of a creation that another apply of the same owner has continued or finished: the machine is in its state.
var errTakenOver = errors.New("another apply of the same owner creates this machine at the same time, and has it in its state, as after the copy of " +
	"a configuration's folder. Give each configuration an owner and names of its own")

// redefine writes want into the stored definition.
func (l life) redefine(ctx context.Context, uuid string, want domainxml.Machine) error {
	return l.redefineIf(ctx, uuid, want, func(is domainxml.Mark) error {
		if want.Mark.Phase == domainxml.Creating && is.Phase == domainxml.Ready {
			return errTakenOver
		}
		return nil
	})
}

// redefineIf is redefine if check allows it, which is called with the mark of the present definition.
func (l life) redefineIf(ctx context.Context, uuid string, want domainxml.Machine, check func(is domainxml.Mark) error) error {
	stored, err := l.host.StoredXML(ctx, uuid)
	if err != nil {
		return err
	}
	is, err := domainxml.Parse(stored)
	if err == nil {
		err = check(is.Mark)
	}
	if err == nil {
		err = refuseExternal(is, want) // also a change made since the last check
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

// start starts the domain, unless it is active.
func (l life) start(ctx context.Context, uuid string) error {
	state, err := l.host.State(ctx, uuid)
	if err != nil || state.Active {
		return err
	}
	return l.host.Start(ctx, uuid)
}

// finish marks the creation of the domain as finished. errTakenOver is the error if another apply has continued it meanwhile.
func (l life) finish(ctx context.Context, uuid string, want domainxml.Machine) error {
	want.Mark = domainxml.Mark{Owner: l.owner, Phase: domainxml.Ready}
	return l.redefineIf(ctx, uuid, want, func(is domainxml.Mark) error {
		if is.Creation != l.creation {
			return errTakenOver
		}
		return nil
	})
}

// change updates an existing domain to want. Devices are unplugged first, then the new ones are plugged in. pending are the changes
// that the running guest gets at its next start; started reports that it was booted.
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

// changesLive are the names of changes that don't need the machine to be off: the next update makes them once the saved guest runs.
var changesLive = []string{"memory", "title", "description"}

// checkSaved refuses to change a machine with a managed save: its next start restores the guest's memory, whose view of the disks would
// be wrong if they had changed.
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

// become updates the stored definition, and an active domain, to want. The stored definition also shows other machines what this one
// requests; if the guard refuses, it gets the former disks back.
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

// reclaim gives a domain the removed devices back for which libvirt still keeps state, because undefine removes only the state of
// devices that the domain has.
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

// takeBack stops and undefines a domain whose creation failed, also after the operation's timeout. It is left alone if another apply has
// continued the creation.
func (l life) takeBack(ctx context.Context, uuid string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	if is, err := l.stored(ctx, uuid); err == nil && is.Mark.Creation != l.creation {
		return nil
	}
	return l.end(ctx, uuid, true)
}

// look reads the stored definition, which the configuration describes; how the running domain differs from it; its addresses; and
// whether it is active.
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
