package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// Progress is how far a copy is, in bytes.
type Progress struct{ Done, All int64 }

// progressTime is how often a copy is asked how far it is.
const progressTime = 2 * time.Second

// errCopyEnded is the error of a copy whose domain went off under it.
var errCopyEnded = errors.New("the domain that copied went off")

// StartCopier starts a domain paused, so that no guest runs in it, and so that it ends with this connection.
func (h *Host) StartCopier(ctx context.Context, id string) error {
	return tell(ctx, h, "start domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		_, err := l.DomainCreateWithFlags(d, uint32(libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy))
		return err
	})
}

// StopCopier ends such a domain at once: there is no guest to be graceful to, and its storage may not answer.
func (h *Host) StopCopier(ctx context.Context, id string) error {
	return tell(ctx, h, "stop domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDestroyFlags(d, libvirt.DomainDestroyDefault)
	})
}

// Pull copies all that a disk of a running domain still has in its backing chain into its top image, and waits for it.
// report is told every other second how far it is.
func (h *Host) Pull(ctx context.Context, id, target string, report func(Progress)) error {
	err := tell(ctx, h, "copy into disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainBlockPull(d, target, 0, 0)
	})
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go h.reportCopy(watched, id, target, report)
	return h.await(ctx, id, func(ctx context.Context) (bool, error) {
		_, running, err := h.copyProgress(ctx, id, target)
		return err == nil && !running, err
	})
}

func (h *Host) reportCopy(ctx context.Context, id, target string, report func(Progress)) {
	tick := time.NewTicker(progressTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p, running, err := h.copyProgress(ctx, id, target); err == nil && running {
			report(p)
		}
	}
}

// copyProgress tells how far a block job is, and whether there is one.
func (h *Host) copyProgress(ctx context.Context, id, target string) (p Progress, running bool, err error) {
	state, err := h.State(ctx, id)
	if err != nil {
		return p, false, err
	}
	if !state.Active {
		return p, false, h.failed("copy into disk "+target, fmt.Errorf("%w (%s)", errCopyEnded, id))
	}
	_, err = onDomain(ctx, h, "ask for the copy of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (struct{}, error) {
		found, _, _, done, all, err := l.DomainGetBlockJobInfo(d, target, 0)
		p, running = Progress{int64(done), int64(all)}, found != 0
		return struct{}{}, err
	})
	return p, running, err
}

// copierGrace is how long one without a copy may be about to begin one.
const copierGrace = 5 * time.Second

// WaitCopied waits while a disk of a domain is being copied into. A domain that is off or gone copies nothing.
func (h *Host) WaitCopied(ctx context.Context, id, target string) error {
	idle := false
	for {
		_, running, err := h.copyProgress(ctx, id, target)
		switch {
		case errors.Is(err, errCopyEnded), errors.Is(err, ErrNotFound):
			return nil
		case err != nil || idle && !running:
			return err
		}
		idle = !running
		select {
		case <-time.After(copierGrace):
		case <-ctx.Done():
			return h.failed("wait for the copy of domain "+id, context.Cause(ctx))
		}
	}
}
