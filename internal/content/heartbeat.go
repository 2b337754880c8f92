package content

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

// While a process creates a volume, the journal's domain is active; libvirtd ends it together with the process's connection. A domain
// that was started before libvirtd crashed is not ended: so the process also increments a counter in the domain's metadata. The journals
// of the shared images below a volume have no domains of their own: they name that of the volume's journal.
const (
	// beatTime is the interval of the counter.
	beatTime = 5 * time.Second
	// heartbeatTimeout is how long a creator is considered alive although its counter does not change, graceTimeout the same for the second
	// check.
	heartbeatTimeout = 20 * time.Second
	graceTimeout     = 2 * beatTime
)

// heartbeat increments the counter until it is stopped, also while a failed creation is reverted.
func (j *journal) heartbeat(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	note := j.Note
	go func() {
		tick := time.NewTicker(beatTime) //nolint:forbidigo // it polls nothing: it shows other processes that this one is alive
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			note.Beat++
			if element, err := note.Element(); err == nil {
				// An error is ignored: without a connection the creation itself fails, too, and reports it.
				_ = j.host.SetLiveMetadata(ctx, j.UUID, domainxml.Namespace, domainxml.Prefix, element)
			}
		}
	}()
	return stop
}

// awaitCreator waits until the creator of the journal's volume has ended, or its counter has stopped.
func (j *journal) awaitCreator(ctx context.Context) error {
	before, err := j.lastBeat(ctx)
	for wait := heartbeatTimeout; err == nil; {
		ended, stopped := j.awaitEnd(ctx, wait)
		if ended {
			return stopped
		}
		var now int
		if now, err = j.lastBeat(ctx); now != before {
			before, wait = now, heartbeatTimeout
			continue
		}
		if wait == graceTimeout {
			break
		}
		// libvirtd may have been unresponsive, for the creator as well: check again.
		wait = graceTimeout
	}
	return ignoreNotFound(err)
}

// awaitEnd waits at most that long for the end of the creator's domain, or of the journal; ended is false when both are there.
func (j *journal) awaitEnd(ctx context.Context, timeout time.Duration) (ended bool, err error) {
	waitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if j.Note.Creator == "" {
		err = j.host.WaitStopped(waitCtx, j.UUID)
	} else { // it creates other volumes after this one
		err = j.host.WaitReleased(waitCtx, j.UUID, j.Note.Creator)
	}
	return waitCtx.Err() == nil || ctx.Err() != nil, err
}

func (j *journal) lastBeat(ctx context.Context) (int, error) {
	live, err := j.host.LiveXML(ctx, j.creator())
	if err != nil {
		return 0, err
	}
	note, _, err := domainxml.ParseJournal(live)
	return note.Beat, err
}

// checkMine is the error of a volume that another process is taking over, because this one seemed dead.
func (j *journal) checkMine(ctx context.Context) error {
	if j.Note.Creator != "" {
		return j.checkHeld(ctx)
	}
	state, err := j.host.State(ctx, j.UUID)
	if err == nil && !state.Active || errors.Is(err, host.ErrNotFound) {
		return errLost
	}
	return err
}

// checkHeld is checkMine for a journal that another domain holds.
func (j *journal) checkHeld(ctx context.Context) error {
	domains, err := j.host.List(ctx)
	if err != nil {
		return err
	}
	isThere := slices.ContainsFunc(domains, func(d host.Listed) bool { return d.UUID == j.UUID })
	isHeld := slices.ContainsFunc(domains, func(d host.Listed) bool { return d.UUID == j.Note.Creator && d.Active })
	if !isThere || !isHeld {
		return errLost
	}
	return nil
}

var errLost = errors.New("the domain that kept the volume for this apply is gone: the connection to libvirt was lost for a while")

// live keeps the journal's domain active until it is released, so that other processes see that the volume is being created.
func (j *journal) live(ctx context.Context) (release func(), err error) {
	hangUp, err := j.host.StartCopier(ctx, j.UUID)
	if err != nil {
		return nil, err
	}
	rest := j.heartbeat(ctx)
	return func() {
		rest()
		ctx, cancel := revert.Context(ctx)
		defer cancel()
		_ = j.host.StopCopier(ctx, j.UUID) // on an error, libvirtd ends it together with the connection
		hangUp()
	}, nil
}
