package content

import (
	"context"
	"errors"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// While somebody works on a volume its journal's domain is active, and goes off with its maker's connection. But one that
// was started before libvirtd crashed stays for ever: so the maker also counts in the domain's metadata.
const (
	// beatTime is how often it counts.
	beatTime = 5 * time.Second
	// patience is how long one that does not count is believed to be alive, graceTimeout how long after that.
	patience     = 20 * time.Second
	graceTimeout = 2 * beatTime
)

// heartbeat counts until it is stopped, also while what was done is undone.
func (j *journal) heartbeat(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	note := j.Note
	go func() {
		tick := time.NewTicker(beatTime) //nolint:forbidigo // it waits for nothing: it tells others
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			note.Beat++
			if element, err := note.Element(); err == nil {
				// Whoever can't reach the host to count can't go on with its work either, and says so there.
				_ = j.host.SetLiveMetadata(ctx, j.UUID, domainxml.Namespace, domainxml.Prefix, element)
			}
		}
	}()
	return stop
}

// awaitCreator waits while somebody works on the journal's volume.
func (j *journal) awaitCreator(ctx context.Context) error {
	before, err := j.lastBeat(ctx)
	for wait := patience; err == nil; {
		ended, stopped := j.awaitEnd(ctx, wait)
		if ended {
			return stopped
		}
		var now int
		if now, err = j.lastBeat(ctx); now != before {
			before, wait = now, patience
			continue
		}
		if wait == graceTimeout {
			break
		}
		// libvirtd may have answered nobody for a while, the maker neither.
		wait = graceTimeout
	}
	return ignoreNotFound(err)
}

// awaitEnd waits so long for the end of the journal's domain; ended is false when it goes on.
func (j *journal) awaitEnd(ctx context.Context, patience time.Duration) (ended bool, err error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = j.host.WaitStopped(patient, j.UUID)
	return patient.Err() == nil || ctx.Err() != nil, err
}

func (j *journal) lastBeat(ctx context.Context) (int, error) {
	live, err := j.host.LiveXML(ctx, j.UUID)
	if err != nil {
		return 0, err
	}
	note, _, err := domainxml.ParseJournal(live)
	return note.Beat, err
}

// checkMine is the error of a volume that somebody else takes over, because nobody seems to work on it any more.
func (j *journal) checkMine(ctx context.Context) error {
	state, err := j.host.State(ctx, j.UUID)
	if err == nil && !state.Active || errors.Is(err, host.ErrNotFound) {
		return errLost
	}
	return err
}

var errLost = errors.New("the domain that kept the volume for this apply is gone: the connection to libvirt was lost for a while")

// live has the journal's domain run until it is released, so that others see that somebody works on the volume.
func (j *journal) live(ctx context.Context) (release func(), err error) {
	hangUp, err := j.host.StartCopier(ctx, j.UUID)
	if err != nil {
		return nil, err
	}
	rest := j.heartbeat(ctx)
	return func() {
		rest()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		_ = j.host.StopCopier(ctx, j.UUID) // it ends with its connection at the latest
		hangUp()
	}, nil
}
