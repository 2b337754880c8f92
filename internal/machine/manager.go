// Package machine is a domain's life without Terraform: it is defined, observed, changed while it runs, and deleted. What fails is
// reverted.
package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Manager manages a machine on one host, from its definition to its end.
type Manager struct {
	// Leases are those before the machine was booted, if its addresses are waited for; nil notes none.
	Leases map[host.Lease]int64
	// ByAgent has guests shut down by their agents, where they have a channel for one, before their power buttons are pressed.
	ByAgent bool
	// Warn shows a warning to the user.
	Warn func(summary, detail string)
	// Disks completes the moves of disks that go along with machines.
	Disks Mover

	host  Host
	key   string // the host's
	owner string
	// creation identifies this apply while it creates a machine.
	creation string
	// hosts are all hosts of the configuration, by key: a disk may be in use on another one.
	hosts func(key string) (guard.Waiter, error)
	// all are the same hosts: the machine may have been migrated to one of them outside of Terraform.
	all guard.Hosts
	// on returns the manager of the machines on another host, with the same settings.
	on     func(m Manager, key string) (Manager, error)
	parsed parsed
	// seen are the local images as this operation has seen them, by name; nil keeps none.
	seen map[string]*content.Seen
	// mayRestart allows the restart of a guest that does not acknowledge an unplug, or that has no port for a device.
	mayRestart bool
	log        Log
}

// Mover brings the content of disks to the host of that key, for which they were prepared: see content.Mover.
type Mover interface {
	Bring(ctx context.Context, key string, i volume.Image, report func(host.Progress)) (brought string, err error)
	CheckBrought(ctx context.Context, key string, i volume.Image, brought string) error
	Begin(ctx context.Context, key string, i volume.Image) error
	MoveAlone(ctx context.Context, key string, i volume.Image, of string, report func(host.Progress)) error
	Came(ctx context.Context, key string, i volume.Image) error
	Arrive(ctx context.Context, key string, i volume.Image) error
}

// Log receives the messages of a Manager, and reports the progress of a wait until stop is called.
type Log struct {
	Info, Warn func(ctx context.Context, what string, fields ...map[string]any)
	Progress   func(ctx context.Context, what string, fields map[string]any) (stop func())
}

// New returns the manager of a host, which is one of all under that key.
func New(h Host, key, owner string, all *host.Registry, log Log) Manager {
	return Manager{
		host: locate(h), key: key, owner: owner, creation: uuid.NewString(), all: guard.HostsOf(all), log: log,
		parsed: parsed{}, seen: map[string]*content.Seen{}, hosts: func(key string) (guard.Waiter, error) { return all.Host(key) },
		on: func(m Manager, key string) (Manager, error) {
			h, err := all.Host(key)
			if err == nil {
				m.host, m.key, m.parsed = h, key, parsed{}
				m = m.afresh()
			}
			return m, err
		},
	}
}

// redefine writes want into the stored definition.
func (m Manager) redefine(ctx context.Context, uuid string, want domainxml.Machine) error {
	stored, err := m.ReadStored(ctx, uuid)
	if err != nil {
		return err
	}
	return m.redefineIf(ctx, stored, want, func(is domainxml.Metadata) error {
		if want.Metadata.Phase == domainxml.Creating && is.Phase == domainxml.Ready {
			return ErrTakenOver
		}
		return nil
	})
}

// redefineIf is redefine of the present definition if check allows it, which is called with that one's metadata.
func (m Manager) redefineIf(ctx context.Context, stored *domainxml.Domain, want domainxml.Machine,
	check func(is domainxml.Metadata) error,
) error {
	is, err := stored.Machine()
	if err != nil {
		return err
	}
	if err := check(is.Metadata); err != nil {
		return err
	}
	if err := refuseExternal(is, want); err != nil { // also a change made since the last check
		return err
	}
	text, err := stored.Update(want.WithMACs(is, newMAC))
	if err != nil {
		return err
	}
	_, err = m.host.Define(ctx, text)
	return err
}

// start starts the domain, unless it is active.
func (m Manager) start(ctx context.Context, uuid string) error {
	err := m.boot(ctx, uuid)
	if errors.Is(err, host.ErrActive) {
		clear(m.Leases) // they are those of its present run
		return nil
	}
	if err == nil {
		return nil
	}
	stored, failed := m.ReadStored(ctx, uuid)
	if failed != nil {
		return err
	}
	var removed []string
	for _, a := range stored.Attached() {
		if a.Ephemeral {
			v, _ := m.host.VolumeAt(ctx, a.Volume.Images[0].Name)
			// otherwise the start's error tells more
			left, _ := content.RemoveTransients(ctx, m.host, v.Pool, a.Volume.Images[0].Name, uuid)
			removed = append(removed, left...)
		}
	}
	if len(removed) == 0 {
		return err
	}
	m.Warn("What a guest had written to an ephemeral disk was removed", fmt.Sprintf("libvirt had left %s on host %s, as when it ends "+
		"together with QEMU, and would not have started the machine.", strings.Join(removed, ", "), m.key))
	return m.boot(ctx, uuid)
}

// boot starts a domain that is off, and notes the leases of its run before.
func (m Manager) boot(ctx context.Context, uuid string) error {
	if m.Leases != nil {
		clear(m.Leases)
		if saved, err := m.host.SavedXML(ctx, uuid); err == nil && saved == "" { // a resumed guest renews nothing for a while
			before, _ := m.host.Leases(ctx) // a host without libvirt networks has none
			maps.Copy(m.Leases, before)
		}
	}
	return m.host.Start(ctx, uuid)
}

// Rename gives a domain that is off another name.
func (m Manager) Rename(ctx context.Context, uuid, name string) error {
	m.log.Info(ctx, "Renaming the machine", map[string]any{"host": m.key, "uuid": uuid, "name": name})
	return m.host.Rename(ctx, uuid, name)
}

// Update updates an existing domain to want. Devices are unplugged first, then the new ones are plugged in. pending are the changes
// that the running guest gets at its next start; started reports that it was booted. now is the machine after that; empty if it was not
// read.
func (m Manager) Update(ctx context.Context, uuid string, want domainxml.Machine,
	power Power,
) (now Observation, pending []string, started bool, err error) {
	m.mayRestart = power.On && power.Restart
	at, err := m.prepareUpdate(ctx, uuid, want, power)
	if err != nil {
		return now, nil, false, err
	}
	is, err := at.machine()
	if err != nil {
		return now, nil, false, err
	}
	want = want.SizedAs(is)
	want.Metadata = domainxml.Metadata{Owner: m.owner, Phase: domainxml.Ready}
	if at.live == nil {
		if err := m.checkSaved(ctx, uuid, want); err != nil {
			return now, nil, false, err
		}
	}
	if power.Autostart {
		if err := m.host.SetAutostart(ctx, uuid, want.Autostart); err != nil {
			return now, nil, false, err
		}
	}
	starts := power.On && at.live == nil
	if starts && power.Once {
		was, err := m.Describe(ctx, uuid, at)
		if err != nil {
			return now, nil, false, err
		}
		starts = !was.IsDone()
	}
	now, pending, err = m.reconcile(ctx, uuid, at, want, starts)
	switch {
	case m.mayRestart && (errors.Is(err, host.ErrDetachRefused) || errors.Is(err, domainxml.ErrNoPort)):
		return now, nil, true, m.restart(ctx, uuid, want, power.Force, err)
	case err != nil:
		return now, nil, false, withWayOut(err)
	case starts:
		return now, nil, true, m.start(ctx, uuid)
	case len(pending) > 0 && power.Restart:
		return now, nil, true, m.restart(ctx, uuid, want, power.Force, errors.New("all is stored, but takes effect only at a restart"))
	}
	return now, pending, false, nil
}

// prepareUpdate makes the checks of an update, and then stops a machine that is to be off.
func (m Manager) prepareUpdate(ctx context.Context, uuid string, want domainxml.Machine, power Power) (Observation, error) {
	at, err := m.seeHere(ctx, uuid)
	if err != nil {
		return at, err
	}
	if err := m.checkChange(ctx, uuid, at, want, power); err != nil {
		return at, err
	}
	if !power.On || power.Autostart { // otherwise it is defined before it needs a definition
		if err := m.persist(ctx, uuid, at); err != nil {
			return at, err
		}
	}
	if at.live == nil || power.On {
		return at, nil
	}
	return m.stopped(ctx, uuid, at, power.Force)
}

// checkChange makes the checks of an update before anything changes.
func (m Manager) checkChange(ctx context.Context, uuid string, at Observation, want domainxml.Machine, power Power) error {
	if err := m.checkChains(ctx, uuid, at, want, !power.On && power.Force); err != nil {
		return err
	}
	was, err := at.machine()
	if err != nil {
		return err
	}
	if err := m.checkLogs(ctx, was, want); err != nil || !power.On {
		return err
	}
	return m.checkOpenFiles(ctx, uuid, at.live, want, power.Restart)
}

// changesLive are the names of changes that don't need the machine to be off: the next update makes them once the saved guest runs.
var changesLive = []string{"memory", "title", "description"}

// checkSaved refuses to change a machine with a managed save: its next start restores the guest's memory, whose view of the disks would
// be wrong if they had changed.
func (m Manager) checkSaved(ctx context.Context, uuid string, want domainxml.Machine) error {
	saved, err := m.host.SavedXML(ctx, uuid)
	if err != nil || saved == "" {
		return err
	}
	restored, err := m.parsed.read(saved)
	if err != nil {
		return err
	}
	differs, err := restored.Pending(want)
	differs = slices.DeleteFunc(differs, func(what string) bool { return slices.Contains(changesLive, what) })
	if err != nil || len(differs) == 0 {
		return err
	}
	start := "Start it before (virsh start), or give"
	if slices.Contains(differs, "boot") {
		start = "If its kernel is gone it can't go on. Give" // the saved guest opens the files that it was started with
	}
	return fmt.Errorf("its guest is saved with its memory (virsh managedsave), and its next start goes on with what it had then. That "+
		"can't be changed: %s. %s up what its memory had, as after a power cut: virsh managedsave-remove %s", strings.Join(differs, ", "),
		start, want.Name)
}

// reconcile updates the stored definition, and an active domain, to want. The stored definition also shows other machines what this one
// requests; if the guard refuses, it gets the former disks and filesystems back.
func (m Manager) reconcile(ctx context.Context, uuid string, at Observation, want domainxml.Machine,
	starts bool,
) (now Observation, pending []string, err error) {
	was, err := at.machine()
	if err != nil {
		return now, nil, err
	}
	live := at.live
	var gone detached
	defer func() {
		if err != nil {
			err = gone.explain(want, err)
		}
	}()
	if live != nil {
		if err := live.CheckPorts(want); err != nil {
			return now, nil, err
		}
		if live, gone, err = m.detach(ctx, uuid, live, want); err != nil {
			return now, nil, err
		}
		if live, err = m.unlock(ctx, uuid, at.stored, live, want); err != nil {
			return now, nil, err
		}
	}
	devices := taken{newDisks(was, want, live), domainxml.ChangedFolders(was, want)}
	if len(gone.disks)+len(gone.macs) > 0 { // guests were waited for
		m = m.afresh()
	}
	if err := m.redefine(ctx, uuid, want.WithTentative(devices.disks, devices.folders)); err != nil {
		return now, nil, err
	}
	if err := m.acquire(ctx, uuid, want, devicesToCheck(devices, want, starts)); err != nil {
		return now, nil, m.revertDisks(ctx, uuid, was, want.RevertFolders(was, devices.folders), devices.disks, live != nil, err)
	}
	if !devices.isEmpty() || was.DomainXML != want.DomainXML { // the second definition records what libvirt has made of that
		if err := m.redefine(ctx, uuid, want); err != nil {
			return now, nil, err
		}
	}
	if live == nil {
		return now, nil, nil
	}
	at.live = live
	if at, pending, err = m.plugIn(ctx, uuid, at, was, want, !devices.isEmpty()); err != nil {
		return now, nil, m.revert(ctx, uuid, was, want, err)
	}
	return at, append(pending, domainxml.PendingRemovals(was, want)...), nil
}

// plugIn plugs in the new devices of an active domain, which the stored definition has by now. waited reports that other machines may have
// been waited for.
func (m Manager) plugIn(ctx context.Context, uuid string, at Observation, was, want domainxml.Machine,
	waited bool,
) (now Observation, pending []string, err error) {
	if at.stored, err = m.ReadStored(ctx, uuid); err != nil {
		return now, nil, err
	}
	if waited {
		if at.live, err = m.readLive(ctx, uuid); err != nil {
			return now, nil, err
		}
	}
	if at.live, err = m.attachInterfaces(ctx, uuid, at.stored, at.live, want); err != nil {
		return now, nil, err
	}
	at.live, pending, err = m.attach(ctx, uuid, at.stored, at.live, was, want)
	return at, pending, err
}

// Delete destroys the domain, unless something would be lost that is nowhere else. One that is gone is no error. was is the machine in
// state.
func (m Manager) Delete(ctx context.Context, uuid string, was domainxml.Machine, force bool) error {
	at, err := m.seeHere(ctx, uuid)
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := m.checkEnd(ctx, uuid, at, was); err != nil {
		return err
	}
	if err := m.checkExchanged(ctx, uuid, at.live, was.Name); err != nil {
		return err
	}
	return m.destroy(ctx, uuid, at, force)
}

// destroy stops the domain and undefines it.
func (m Manager) destroy(ctx context.Context, uuid string, at Observation, force bool) error {
	err := m.stop(ctx, uuid, at, force)
	if err == nil {
		err = m.prepareUndefine(ctx, at)
	}
	if err == nil {
		err = m.host.Undefine(ctx, uuid)
	}
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}

// prepareUndefine gives a domain the removed devices back for which libvirt still keeps state, because undefine removes only the state of
// devices that the domain has.
func (m Manager) prepareUndefine(ctx context.Context, at Observation) error {
	text, err := at.stored.ForUndefine()
	if err == nil && text != "" {
		_, err = m.host.Define(ctx, text)
	}
	return err
}
