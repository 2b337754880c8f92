package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// Progress is the progress of a copy, in bytes.
type Progress struct{ Done, All int64 }

// progressTime is the interval at which the progress of a copy is queried.
const progressTime = 2 * time.Second

// readyTime is how often a copy is looked at: for one of a network disk libvirt sends no event that go-libvirt knows.
const readyTime = 100 * time.Millisecond

// errCopyEnded is the error of a copy whose domain ended during the copy.
var errCopyEnded = errors.New("the domain that copied went off")

// StartCopier starts a domain paused, so that no guest runs in it. It ends with release or with this process: libvirtd ends it together
// with its own connection, which no other call closes.
func (h *Host) StartCopier(ctx context.Context, id string) (release func(), err error) {
	d, err := domain(id)
	if err != nil {
		return nil, h.failed("start domain "+id, err)
	}
	l, err := dial(ctx, h.uri, h.timeout, func(*libvirt.Libvirt) error { return nil })
	if err != nil {
		return nil, h.failed("start domain "+id, err)
	}
	release = func() { go l.Disconnect() } //nolint:errcheck // an unresponsive libvirtd may never answer
	started := make(chan error, 1)
	go func() {
		_, err := l.DomainCreateWithFlags(d, uint32(libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy))
		started <- err
	}()
	select {
	case err = <-started: // opening slow storage can take long
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		release()
		return nil, h.failed("start domain "+id, err)
	}
	return release, nil
}

// FinishCopier ends such a domain gracefully, however long that takes: QEMU flushes the copied data only when it ends. A domain that is
// already off may not have flushed them, which is an error.
func (h *Host) FinishCopier(ctx context.Context, id string) error {
	ended := h.Destroy(ctx, id) // each call waits some seconds for QEMU
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

// StopCopier ends such a domain at once: the copy is discarded, and its storage may be unresponsive.
func (h *Host) StopCopier(ctx context.Context, id string) error {
	err := domainDo(ctx, h, "stop domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDestroyFlags(d, libvirt.DomainDestroyDefault)
	})
	if isCode(err, libvirt.ErrOperationInvalid) {
		return nil // it has ended meanwhile
	}
	return err
}

// Pull copies the data of the backing chain of a running domain's disk into the top image, and waits until the job has ended, also if it
// has failed: a complete copy has no backing chain in the live XML. report is called every other second with the progress.
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

// CopyOnto copies all of a running domain's disk onto the image of a <disk> element, which must be as large, and waits until all of it is
// written. The domain does not use that image. report is called every other second with the progress.
func (h *Host) CopyOnto(ctx context.Context, id, target, diskXML string, report func(Progress)) error {
	op := "copy disk " + target + " of domain"
	err := domainDo(ctx, h, op, id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainBlockCopy(d, target, diskXML, nil, libvirt.DomainBlockCopyReuseExt|libvirt.DomainBlockCopyTransientJob)
	})
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go h.reportCopy(watched, id, target, report)
	err = h.AwaitEvery(ctx, readyTime, id, func(ctx context.Context) (bool, error) {
		p, running, err := h.copyProgress(ctx, id, target)
		if err == nil && !running {
			err = h.failed(op+" "+id, errCopyFailed)
		}
		return err == nil && p.All > 0 && p.Done == p.All, err // QEMU has flushed it then
	})
	if err != nil {
		return err
	}
	return domainDo(ctx, h, "end the copy of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainBlockJobAbort(d, target, 0)
	})
}

// errCopyFailed is the error of a copy that QEMU has given up.
var errCopyFailed = errors.New("QEMU gave up the copy: what it reads or writes failed, or is full. libvirt's log on the host has what it " +
	"said")

// CopyDisk is CopyOnto for the image of a <disk> element with the target vda, instead of a domain's disk.
func (h *Host) CopyDisk(ctx context.Context, fromXML, toXML string) error {
	_, err := opened(ctx, h, "open the volume to read it", fromXML, func(_ *libvirt.Libvirt, d libvirt.Domain) (struct{}, error) {
		return struct{}{}, h.CopyOnto(ctx, uuid.UUID(d.UUID).String(), "vda", toXML, func(Progress) {})
	})
	return err
}

func (h *Host) reportCopy(ctx context.Context, id, target string, report func(Progress)) {
	tick := time.NewTicker(progressTime) //nolint:forbidigo // libvirt has no events for the progress of a copy
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

// copyProgress returns the progress of a block job, and whether there is one.
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
