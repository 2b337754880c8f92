package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// stop shuts the machine down and reports progress. A machine that is migrated away meanwhile is off on this host, and runs elsewhere.
func (m Manager) stop(ctx context.Context, uuid string, at Observation, force bool) error {
	defer m.log.Progress(ctx, "Waiting for the guest to shut down", map[string]any{"domain": uuid, "force_stop": force})()
	if at.live == nil {
		return m.host.Stop(ctx, uuid, host.Shutdown{Force: force}) // it may have been started since
	}
	isPersistent, err := m.host.IsPersistent(ctx, uuid)
	if err == nil {
		err = m.host.Stop(ctx, uuid, host.Shutdown{Agent: m.ByAgent && at.live.HasAgent(), Force: force})
	}
	if err != nil {
		return err
	}
	return m.checkStopped(ctx, uuid, isPersistent)
}

// stopped is the machine after stop.
func (m Manager) stopped(ctx context.Context, uuid string, at Observation, force bool) (Observation, error) {
	if err := m.stop(ctx, uuid, at, force); err != nil {
		return at, err
	}
	return m.see(ctx, uuid)
}

// unplugging is the context and the announcement of an unplug. The host waits for a fifth of the timeout, but for a minute at least: of a
// short one, that is cut to a fifth, too, where the machine may be restarted for what its guest does not acknowledge.
func (m Manager) unplugging(ctx context.Context, machine, device string) (limited context.Context, done func()) {
	cancel := func() {}
	if deadline, ok := ctx.Deadline(); ok && m.mayRestart && time.Until(deadline)/5 < time.Minute {
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/5)
	}
	stop := m.log.Progress(ctx, "Waiting for the guest to acknowledge the unplug", map[string]any{"machine": machine, "device": device})
	return ctx, func() { stop(); cancel() }
}

// withWayOut adds to an error what to do about a guest that does not acknowledge an unplug.
func withWayOut(err error) error {
	if !errors.Is(err, host.ErrDetachRefused) {
		return err
	}
	return fmt.Errorf("%w\n\nApply again when the guest runs and does not use it: it is asked again. To do without the guest, have the "+
		"machine restarted: allow_restart = true and, if it ignores its power button, too, force_stop = true", err)
}

// CheckHere is guard.ErrMigrated for a machine that runs, or may run, on another host: its disks are in use there, and it must not be
// started a second time.
func (m Manager) CheckHere(ctx context.Context, uuid string) error {
	return m.all.CheckMigrated(ctx, m.key, m.host, uuid)
}

// checkStopped is CheckHere for a machine that has just gone off. If its host reports that it was shut down, no other host is queried; a
// transient one is gone then.
func (m Manager) checkStopped(ctx context.Context, uuid string, isPersistent bool) error {
	is, err := m.host.State(ctx, uuid)
	if err == nil && !is.Active && is.Reason != "" && is.Reason != host.ReasonMigrated {
		return nil
	}
	if err = m.CheckHere(ctx, uuid); !isPersistent && errors.Is(err, guard.ErrUnanswered) {
		return nil
	}
	return err
}

// Power is how an update may start and stop the machine: whether it is to run, whether it may be forced off if the guest does not shut
// down, whether it may be restarted for changes that a running guest can't get, whether its autostart is another one than in the state, and
// whether it stays off if its program has ended by itself.
type Power struct{ On, Force, Restart, Autostart, Once bool }

// restart shuts the guest down, changes the machine while it is off, and starts it. why is what the running guest can't get, or did not
// release. The guard checks again, because another machine may have got the storage since.
func (m Manager) restart(ctx context.Context, uuid string, want domainxml.Machine, force bool, why error) error {
	m.log.Info(ctx, "Restarting the machine", map[string]any{"machine": want.Name, "cause": why.Error()})
	at, err := m.see(ctx, uuid)
	if err == nil && at.live != nil {
		err = m.checkStorage(ctx, uuid, want, devicesToCheck(taken{}, want, true).disks)
	}
	if err == nil {
		err = m.persist(ctx, uuid, at)
	}
	if err != nil {
		return fmt.Errorf("%w\n\nIt was to be restarted (allow_restart), which would fail, so the machine was not shut down: %w", why, err)
	}
	if at, err = m.stopped(ctx, uuid, at, force); err != nil {
		return fmt.Errorf("%w\n\nIt was to be restarted (allow_restart), and the machine could not be shut down: %w", why, err)
	}
	ctx, cancel := revert.Extend(ctx) // the guest may have used up the time, and a machine is not left off
	defer cancel()
	if _, _, err = m.afresh().reconcile(ctx, uuid, at, want, true); err == nil {
		err = m.boot(ctx, uuid)
	}
	if err != nil {
		return fmt.Errorf("it was shut down for a restart, and is off: %w", err)
	}
	return nil
}
