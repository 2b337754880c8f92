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

// StartCopier starts a domain paused, so that no guest runs in it. It ends with release, and with this process: it hangs
// on a connection of its own, which no other call can take away.
func (h *Host) StartCopier(ctx context.Context, id string) (release func(), err error) {
	d, err := domain(id)
	if err != nil {
		return nil, h.failed("start domain "+id, err)
	}
	l, err := dial(ctx, h.uri, func(*libvirt.Libvirt) error { return nil })
	if err != nil {
		return nil, h.failed("start domain "+id, err)
	}
	release = func() { go l.Disconnect() } //nolint:errcheck // it waits for a libvirtd that may never answer
	started := make(chan error, 1)
	go func() {
		_, err := l.DomainCreateWithFlags(d, uint32(libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy))
		started <- err
	}()
	select {
	case err = <-started: // storage that is slow to answer takes its time
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		release()
		return nil, h.failed("start domain "+id, err)
	}
	return release, nil
}

// FinishCopier ends such a domain in good order, so that all that was copied is on the storage, however long that takes:
// QEMU writes it back when it is asked to end, and not before. A domain that is off already may not have done so, which is
// an error.
func (h *Host) FinishCopier(ctx context.Context, id string) error {
	ended := h.Destroy(ctx, id) // it gives QEMU some seconds at a time
	if isCode(ended, libvirt.ErrOperationInvalid) {
		return h.failed("finish the copy", fmt.Errorf("%w (%s)", errCopyEnded, id))
	}
	for {
		state, err := h.State(ctx, id)
		if err != nil || !state.Active {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), ended)
		}
		ended = h.Destroy(ctx, id)
	}
}

// StopCopier ends such a domain at once: what it copied is not wanted, and its storage may not answer.
func (h *Host) StopCopier(ctx context.Context, id string) error {
	err := domainDo(ctx, h, "stop domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDestroyFlags(d, libvirt.DomainDestroyDefault)
	})
	if isCode(err, libvirt.ErrOperationInvalid) {
		return nil // it has just gone off
	}
	return err
}

// Pull copies all that a disk of a running domain still has in its backing chain into its top image, and waits until that
// has ended, which it also does when it fails: whether it is whole shows in the live XML, where the chain is gone then.
// report is told every other second how far it is.
func (h *Host) Pull(ctx context.Context, id, target string, report func(Progress)) error {
	err := domainDo(ctx, h, "copy into disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainBlockPull(d, target, 0, 0)
	})
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go h.reportCopy(watched, id, target, report)
	return h.Await(ctx, id, func(ctx context.Context) (bool, error) {
		_, running, err := h.copyProgress(ctx, id, target)
		return err == nil && !running, err
	})
}

func (h *Host) reportCopy(ctx context.Context, id, target string, report func(Progress)) {
	tick := time.NewTicker(progressTime) //nolint:forbidigo // libvirt tells how far a copy is only when asked
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
