package host

import (
	"context"
	"errors"
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
// without, that is ErrStillRunning. A guest that can't obey, such as a paused one, is not waited for. A domain that is off, or
// gone, is what was wanted.
func (h *Host) Stop(ctx context.Context, id string, force bool) error {
	state, err := h.State(ctx, id)
	if err != nil || !state.Active {
		return err
	}
	isOver := false
	if err = h.canObey(state, id); err == nil {
		patient, cancel := context.WithTimeout(ctx, stopTimeout(ctx, force))
		err = h.shutdown(patient, id)
		isOver = patient.Err() != nil
		cancel()
	}
	if err == nil || !force || !isOver && !errors.Is(err, ErrStillRunning) {
		return err
	}
	if err := h.Destroy(ctx, id); err != nil && !isCode(err, libvirt.ErrOperationInvalid) {
		return err // an invalid operation: it has just gone off by itself
	}
	return h.WaitStopped(ctx, id)
}

// canObey is ErrStillRunning for an active guest that its power button does not reach.
func (h *Host) canObey(state State, id string) error {
	if !state.Active || state.Responsive {
		return nil
	}
	return h.failed("shut down domain "+id, fmt.Errorf("%w: it is %s, so it can't act on its power button. Go on with it (virsh resume), or "+
		"turn its power off, which loses what it has not written: force_stop = true", ErrStillRunning, state.Describe()))
}

// stopTimeout is how long the guest is waited for.
func stopTimeout(ctx context.Context, force bool) time.Duration {
	left := timeLeft(ctx)
	if force {
		return min(graceTime, left/2)
	}
	// What remains is for saying what happened.
	return left - min(left/10, time.Second)
}

// timeLeft is what an operation has left; a day without a limit.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 24 * time.Hour
	}
	return time.Until(deadline)
}

// shutdown presses the power button until the domain is off, or its guest can't act on it any more.
func (h *Host) shutdown(ctx context.Context, id string) error {
	start, pressed := time.Now(), 0
	stopped := make(chan error, 1)
	go func() {
		stopped <- h.Await(ctx, id, func(ctx context.Context) (bool, error) {
			state, err := h.State(ctx, id)
			if errors.Is(err, ErrNotFound) || err == nil && !state.Active {
				return true, nil
			}
			return false, errors.Join(err, h.canObey(state, id))
		})
	}()
	again := time.NewTicker(askAgain) //nolint:forbidigo // it asks the guest anew; an event tells that it is off
	defer again.Stop()
	for {
		err := domainDo(ctx, h, "shut down domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
			return l.DomainShutdownFlags(d, libvirt.DomainShutdownAcpiPowerBtn)
		})
		// An invalid operation: it has just gone off, which the event tells. Unreachable: libvirtd may come back.
		if err != nil && !isCode(err, libvirt.ErrOperationInvalid) && !unreachable(err) && ctx.Err() == nil {
			return err
		}
		if err == nil {
			pressed++
		}
		select {
		case err := <-stopped:
			if ctx.Err() != nil && !unreachable(err) {
				return h.failed("shut down domain "+id, fmt.Errorf("%w: it ignores its power button, which was pressed %d times within %s. Shut it "+
					"down from inside, give it more time (timeouts), or have its power turned off after a minute, which loses what it has not "+
					"written: force_stop = true", ErrStillRunning, pressed, time.Since(start).Round(time.Second)))
			}
			return err
		case <-again.C:
		}
	}
}
