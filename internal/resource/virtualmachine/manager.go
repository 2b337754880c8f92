package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// domains are the calls of a host that a manager needs.
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
	DeleteVolume(ctx context.Context, pool, name string) error
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

// manager manages a machine on one host, from its definition to its end. It does not use Terraform's types.
type manager struct {
	host  domains
	key   string // the host's
	owner string
	// creation identifies this apply while it creates a machine.
	creation string
	// hosts are all hosts of the configuration, by key: a disk may be in use on another one.
	hosts func(key string) (guard.Waiter, error)
	// all are the same hosts: the machine may have been migrated to one of them outside of Terraform.
	all    guard.Hosts
	parsed parsed
	// mayRestart allows the restart of a guest that does not acknowledge an unplug, or that has no port for a device.
	mayRestart bool
	// warn shows a warning to the user.
	warn func(summary, detail string)
}

// redefine writes want into the stored definition.
func (m manager) redefine(ctx context.Context, uuid string, want domainxml.Machine) error {
	return m.redefineIf(ctx, uuid, want, func(is domainxml.Metadata) error {
		if want.Metadata.Phase == domainxml.Creating && is.Phase == domainxml.Ready {
			return errTakenOver
		}
		return nil
	})
}

// redefineIf is redefine if check allows it, which is called with the metadata of the present definition.
func (m manager) redefineIf(ctx context.Context, uuid string, want domainxml.Machine, check func(is domainxml.Metadata) error) error {
	stored, err := m.readStored(ctx, uuid)
	if err != nil {
		return err
	}
	is, err := stored.Machine()
	if err == nil {
		err = check(is.Metadata)
	}
	if err == nil {
		err = refuseExternal(is, want) // also a change made since the last check
	}
	if err != nil {
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
func (m manager) start(ctx context.Context, uuid string) error {
	state, err := m.host.State(ctx, uuid)
	if err != nil || state.Active {
		return err
	}
	if err = m.host.Start(ctx, uuid); err == nil {
		return nil
	}
	stored, failed := m.readStored(ctx, uuid)
	if failed != nil {
		return err
	}
	var removed []string
	for _, a := range stored.Attached() {
		if a.Ephemeral {
			left, _ := content.RemoveTransients(ctx, m.host, a.Volume.Images[0].Name, uuid) // otherwise the start's error tells more
			removed = append(removed, left...)
		}
	}
	if len(removed) == 0 {
		return err
	}
	m.warn("What a guest had written to an ephemeral disk was removed", fmt.Sprintf("libvirt had left %s on host %s, as when it ends together with QEMU, "+
		"and would not have started the machine.", strings.Join(removed, ", "), m.key))
	return m.host.Start(ctx, uuid)
}

// change updates an existing domain to want. Devices are unplugged first, then the new ones are plugged in. pending are the changes
// that the running guest gets at its next start; started reports that it was booted.
func (m manager) change(ctx context.Context, uuid string, want domainxml.Machine, power power) (pending []string, started bool, err error) {
	m.mayRestart = power.on && power.restart
	if err := m.checkChains(ctx, uuid, want, !power.on && power.force); err != nil {
		return nil, false, err
	}
	was, err := m.stored(ctx, uuid)
	if err == nil {
		err = m.checkLogs(ctx, was, want)
	}
	if err != nil {
		return nil, false, err
	}
	if power.on {
		if err := m.checkOpenFiles(ctx, uuid, want, power.restart); err != nil {
			return nil, false, err
		}
	}
	if err := m.persist(ctx, uuid); err != nil {
		return nil, false, err
	}
	if !power.on {
		if err := m.stop(ctx, uuid, power.force); err != nil {
			return nil, false, err
		}
	}
	is, active, err := m.observe(ctx, uuid)
	if err != nil {
		return nil, false, err
	}
	want = want.SizedAs(is)
	want.Metadata = domainxml.Metadata{Owner: m.owner, Phase: domainxml.Ready}
	if !active {
		if err := m.checkSaved(ctx, uuid, want); err != nil {
			return nil, false, err
		}
	}
	if is.Autostart != want.Autostart {
		if err := m.host.SetAutostart(ctx, uuid, want.Autostart); err != nil {
			return nil, false, err
		}
	}
	starts := power.on && !active
	pending, err = m.reconcile(ctx, uuid, want, active, starts)
	switch {
	case m.mayRestart && (errors.Is(err, host.ErrDetachRefused) || errors.Is(err, domainxml.ErrNoPort)):
		return nil, true, m.restart(ctx, uuid, want, power.force, err)
	case err != nil:
		return nil, false, withWayOut(err)
	case starts:
		return nil, true, m.start(ctx, uuid)
	case len(pending) > 0 && power.restart:
		return nil, true, m.restart(ctx, uuid, want, power.force, errors.New("all is stored, but takes effect only at a restart"))
	}
	return pending, false, nil
}

// changesLive are the names of changes that don't need the machine to be off: the next update makes them once the saved guest runs.
var changesLive = []string{"memory", "title", "description"}

// checkSaved refuses to change a machine with a managed save: its next start restores the guest's memory, whose view of the disks would
// be wrong if they had changed.
func (m manager) checkSaved(ctx context.Context, uuid string, want domainxml.Machine) error {
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
	return fmt.Errorf("its guest is saved with its memory (virsh managedsave), and its next start goes on with what it had then. That can't "+
		"be changed: %s. Start it before (running = true and nothing else), or give up what its memory had, as after a power cut: "+
		"virsh managedsave-remove %s", strings.Join(differs, ", "), want.Name)
}

// reconcile updates the stored definition, and an active domain, to want. The stored definition also shows other machines what this one
// requests; if the guard refuses, it gets the former disks back.
func (m manager) reconcile(ctx context.Context, uuid string, want domainxml.Machine, active, starts bool) (pending []string, err error) {
	was, err := m.stored(ctx, uuid)
	if err != nil {
		return nil, err
	}
	var gone detached
	defer func() {
		if err != nil {
			err = gone.explain(want, err)
		}
	}()
	if active {
		live, err := m.readLive(ctx, uuid)
		if err == nil {
			err = live.CheckPorts(want)
		}
		if err != nil {
			return nil, err
		}
		if gone, err = m.detach(ctx, uuid, want); err != nil {
			return nil, err
		}
		if err := m.unlock(ctx, uuid, want); err != nil {
			return nil, err
		}
	}
	taken, err := m.newDisks(ctx, uuid, was, want, active)
	if err != nil {
		return nil, err
	}
	if err := m.redefine(ctx, uuid, want.WithTentative(taken)); err != nil {
		return nil, err
	}
	if err := m.acquire(ctx, uuid, want, disksToCheck(taken, want, starts)); err != nil {
		return nil, m.revertDisks(ctx, uuid, was, want, taken, active, err)
	}
	if len(taken) > 0 {
		if err := m.redefine(ctx, uuid, want); err != nil {
			return nil, err
		}
	}
	if !active {
		return nil, nil
	}
	if err = m.attachInterfaces(ctx, uuid, want); err == nil {
		pending, err = m.attach(ctx, uuid, was, want)
	}
	if err != nil {
		return nil, m.revert(ctx, uuid, was, want, err)
	}
	return append(pending, domainxml.PendingRemovals(was, want)...), nil
}

// destroy stops the domain and undefines it.
func (m manager) destroy(ctx context.Context, uuid string, force bool) error {
	err := m.stop(ctx, uuid, force)
	if err == nil {
		err = m.prepareUndefine(ctx, uuid)
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
func (m manager) prepareUndefine(ctx context.Context, uuid string) error {
	stored, err := m.readStored(ctx, uuid)
	if err != nil {
		return err
	}
	text, err := stored.ForUndefine()
	if err == nil && text != "" {
		_, err = m.host.Define(ctx, text)
	}
	return err
}

// observe reads the stored definition, which the configuration describes; how the running domain differs from it; its addresses; and
// whether it is active.
func (m manager) observe(ctx context.Context, uuid string) (is domainxml.Machine, active bool, err error) {
	if is, err = m.stored(ctx, uuid); err != nil {
		return is, false, err
	}
	if is.Autostart, err = m.host.Autostart(ctx, uuid); err != nil {
		return is, false, err
	}
	state, err := m.host.State(ctx, uuid)
	is.State = state.String()
	if err != nil || !state.Active {
		m.completeExternal(ctx, uuid, is.External)
		return is, false, err
	}
	live, err := m.readLive(ctx, uuid)
	if err != nil {
		return is, true, err
	}
	if err := is.Compare(live); err != nil {
		return is, true, err
	}
	m.completeExternal(ctx, uuid, is.External)
	m.reach(ctx, uuid, &is)
	return is, true, nil
}

func (m manager) stored(ctx context.Context, uuid string) (domainxml.Machine, error) {
	stored, err := m.readStored(ctx, uuid)
	if err != nil {
		return domainxml.Machine{}, err
	}
	is, err := stored.Machine()
	return is.WithoutTentative(), err
}
