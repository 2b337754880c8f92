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
	// patience is how long one that does not count is believed to be alive.
	patience = 20 * time.Second
)

// beat counts until it is stopped.
func (j *journal) beat(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	note := j.Note
	go func() {
		tick := time.NewTicker(beatTime)
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

// awaitMaker waits while somebody works on the journal's volume.
func (j *journal) awaitMaker(ctx context.Context) error {
	before, err := j.lastBeat(ctx)
	for err == nil {
		patient, cancel := context.WithTimeout(ctx, patience)
		stopped := j.host.WaitStopped(patient, j.UUID)
		late := patient.Err() != nil && ctx.Err() == nil
		cancel()
		if !late {
			return stopped
		}
		var now int
		if now, err = j.lastBeat(ctx); now == before {
			break
		}
		before = now
	}
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	return err
}

func (j *journal) lastBeat(ctx context.Context) (int, error) {
	live, err := j.host.LiveXML(ctx, j.UUID)
	if err != nil {
		return 0, err
	}
	note, _, err := domainxml.ParseJournal(live)
	return note.Beat, err
}

// checkMine is the error of a volume that somebody else has taken over, who must have thought that nobody worked on it.
func (j *journal) checkMine(ctx context.Context) error {
	state, err := j.host.State(ctx, j.UUID)
	if err == nil && !state.Active || errors.Is(err, host.ErrNotFound) {
		return errTakenOver
	}
	return err
}

var errTakenOver = errors.New("somebody else has taken the volume over meanwhile")
