package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"
)

const (
	// graceTime is how long a guest may take to shut down before it is forced off.
	graceTime = time.Minute
	// askAgain is the interval of shutdown requests: firmware and a booting kernel lose them.
	askAgain = 5 * time.Second
	// agentGrace is how long a guest may take to shut down by its agent before its power button is pressed, too.
	agentGrace = 10 * time.Second
)

// Shutdown is how a guest is shut down: whether its agent is asked before its power button is pressed, and whether the domain is destroyed
// in the end.
type Shutdown struct{ Agent, Force bool }

// Stop sends shutdown requests to a domain and waits until it is off or ctx ends. With force the domain is destroyed if the guest has
// not shut down within a minute, or half of the remaining time if that is less; without force that is ErrStillRunning. A guest that can't
// respond, such as a paused one, is not waited for. A domain that is off, or does not exist, is a success.
func (h *Host) Stop(ctx context.Context, id string, how Shutdown) error {
	state, err := h.State(ctx, id)
	if err != nil || !state.Active {
		return err
	}
	isOver := false
	if err = h.canObey(state, id); err == nil {
		waitCtx, cancel := context.WithTimeout(ctx, stopTimeout(ctx, how.Force))
		err = h.shutdown(waitCtx, id, how.Agent)
		isOver = waitCtx.Err() != nil
		cancel()
	}
	if err == nil || !how.Force || !isOver && !errors.Is(err, ErrStillRunning) {
		return err
	}
	if err = h.Destroy(ctx, id); isCode(err, libvirt.ErrOperationInvalid) {
		return nil // it has ended meanwhile
	}
	return err
}

// canObey is ErrStillRunning for an active guest that can't handle a shutdown request.
func (h *Host) canObey(state State, id string) error {
	if !state.Active || state.Responsive {
		return nil
	}
	return h.failed("shut down domain "+id, fmt.Errorf("%w: it is %s, so it can't act on its power button. Go on with it (virsh resume), "+
		"or turn its power off, which loses what it has not written: force_stop = true", ErrStillRunning, state.Describe()))
}

// stopTimeout is how long the guest may take to shut down.
func stopTimeout(ctx context.Context, force bool) time.Duration {
	left := timeLeft(ctx)
	if force {
		return min(graceTime, left/2)
	}
	// The remaining time is for the error.
	return left - min(left/10, time.Second)
}

// timeLeft is the remaining time of an operation; a day without a deadline.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 24 * time.Hour
	}
	return time.Until(deadline)
}

// shutdown asks the agent once, and then presses the power button again and again, until the domain is off, or its guest can't handle that
// any more.
func (h *Host) shutdown(ctx context.Context, id string, byAgent bool) error {
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
	var refused <-chan struct{}
	agent, wait := "", time.Duration(0)
	if byAgent {
		agent, wait, refused = "its guest agent was asked, and ", min(agentGrace, timeLeft(ctx)/3), h.askAgentToStop(ctx, id)
	}
	press := time.NewTimer(wait)
	defer press.Stop()
	for {
		select {
		case err := <-stopped:
			if ctx.Err() != nil && !unreachable(err) {
				return h.failed("shut down domain "+id, fmt.Errorf("%w: %sit ignores its power button, which was pressed %d times within "+
					"%s. Shut it down from inside, give it more time (timeouts), or have its power turned off after a minute, which "+
					"loses what it has not written: force_stop = true", ErrStillRunning, agent, pressed,
					time.Since(start).Round(time.Second)))
			}
			return err
		case <-refused:
			if pressed == 0 { // later it is libvirt's timeout, for an agent that has taken it
				agent = "no guest agent took the request, and "
			}
		case <-press.C:
		}
		press.Reset(askAgain)
		if err := h.pressButton(ctx, id, &pressed); err != nil {
			return err
		}
	}
}

// pressButton sends an ACPI shutdown request, and counts it.
func (h *Host) pressButton(ctx context.Context, id string, pressed *int) error {
	err := domainDo(ctx, h, "shut down domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainShutdownFlags(d, libvirt.DomainShutdownAcpiPowerBtn)
	})
	switch {
	case err == nil:
		*pressed++
	case errors.Is(err, ErrNotFound), isCode(err, libvirt.ErrOperationInvalid), unreachable(err), ctx.Err() != nil:
		err = nil // it has ended, for which there is an event, or libvirtd may return
	}
	return err
}

// askAgentToStop has the guest agent shut the guest down; refused tells that it does not. For an agent that hangs libvirt waits a minute,
// which keeps neither the caller nor the connection.
func (h *Host) askAgentToStop(ctx context.Context, id string) (refused <-chan struct{}) {
	answer := make(chan struct{}, 1)
	go func() {
		err := domainDo(context.WithoutCancel(ctx), h, "ask the guest agent to shut down domain", id,
			func(l *libvirt.Libvirt, d libvirt.Domain) error {
				return l.DomainShutdownFlags(d, libvirt.DomainShutdownGuestAgent)
			})
		if err != nil {
			answer <- struct{}{}
		}
	}()
	return answer
}
