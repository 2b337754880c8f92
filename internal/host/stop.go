package host

import (
	"context"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"
)

const (
	// graceTime is what a guest that may be forced gets to shut down by itself.
	graceTime = time.Minute
	// askAgain is how often the power button is pressed: firmware and a booting kernel lose the request.
	askAgain = 5 * time.Second
)

// Stop shuts a domain down through its power button and waits until it is off or ctx ends. With force the power is
// turned off when the guest has not obeyed within a minute, or within half of the remaining time if that is less;
// without, that is ErrStillRunning. A domain that is off, or gone, is what was wanted.
func (h *Host) Stop(ctx context.Context, id string, force bool) error {
	state, err := h.State(ctx, id)
	if err != nil || !state.Active {
		return err
	}
	if !state.Responsive && !force {
		return h.failed("shut down domain "+id, fmt.Errorf(
			"%w: it is %s, so it can't act on its power button. Resume it, or set force_stop", ErrStillRunning, state))
	}
	if state.Responsive {
		patient, cancel := context.WithTimeout(ctx, patience(ctx, force))
		err = h.shutdown(patient, id)
		cancel()
		if err == nil || ctx.Err() != nil && !force || patient.Err() == nil {
			return err
		}
	}
	if !force {
		return err
	}
	if err := h.Destroy(ctx, id); err != nil && !isCode(err, libvirt.ErrOperationInvalid) {
		return err // an invalid operation: it has just gone off by itself
	}
	return h.WaitStopped(ctx, id)
}

// patience is how long the guest is waited for.
func patience(ctx context.Context, force bool) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(24 * time.Hour)
	}
	left := time.Until(deadline)
	if force {
		return min(graceTime, left/2)
	}
	// What remains is for saying what happened.
	return left - min(left/10, time.Second)
}

// shutdown presses the power button until the domain is off.
func (h *Host) shutdown(ctx context.Context, id string) error {
	stopped := make(chan error, 1)
	go func() { stopped <- h.WaitStopped(ctx, id) }()
	again := time.NewTicker(askAgain) //nolint:forbidigo // it asks the guest anew; an event tells that it is off
	defer again.Stop()
	for {
		err := tell(ctx, h, "shut down domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
			return l.DomainShutdownFlags(d, libvirt.DomainShutdownAcpiPowerBtn)
		})
		// An invalid operation: it has just gone off, which the event tells. Unreachable: libvirtd may come back.
		if err != nil && !isCode(err, libvirt.ErrOperationInvalid) && !unreachable(err) && ctx.Err() == nil {
			return err
		}
		select {
		case err := <-stopped:
			if ctx.Err() != nil && !unreachable(err) {
				return h.failed("shut down domain "+id, fmt.Errorf(
					"%w. It may ignore its power button. Shut it down yourself, give it more time, or set force_stop", ErrStillRunning))
			}
			return err
		case <-again.C:
		}
	}
}
