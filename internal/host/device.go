package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// letGoTime is what a guest gets to let go of a device before it is asked again: while it boots, the request is lost.
const letGoTime = 5 * time.Second

// Attach plugs a device into a running domain; the stored definition stays as it is.
func (h *Host) Attach(ctx context.Context, id, deviceXML string) error {
	return domainDo(ctx, h, "plug a device into domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainAttachDeviceFlags(d, deviceXML, uint32(libvirt.DomainAffectLive))
	})
}

// ErrDetachRefused is the error of a guest that did not acknowledge an unplug.
var ErrDetachRefused = errors.New("the guest did not acknowledge the unplug")

// leastUnplugTime is what a guest gets at least to acknowledge an unplug, if the operation has that much time.
const leastUnplugTime = time.Minute

// unplugTime is how long a guest is waited for: it answers within seconds, or when it has booted, or never. It is a fifth of
// the operation's time, so that a longer timeout is one here, too.
func unplugTime(ctx context.Context) time.Duration {
	left := timeLeft(ctx)
	return max(left/5, min(left, leastUnplugTime))
}

// Detach unplugs a device from a running domain and waits until gone, which is asked with the live XML, says that the
// guest has let go: libvirt itself reports success when the guest only has been asked. It is asked again every few
// seconds. What a guest does not acknowledge, and what a paused one can't, is ErrDetachRefused. The stored definition stays as it is. A
// domain that has gone off meanwhile has let go, too.
func (h *Host) Detach(ctx context.Context, id, deviceXML string, gone func(liveXML string) (bool, error)) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, unplugTime(ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- h.Await(ctx, id, func(ctx context.Context) (bool, error) { return h.detached(ctx, id, gone) })
	}()
	again := time.NewTicker(letGoTime) //nolint:forbidigo // it asks the guest anew; an event tells that it has let go
	defer again.Stop()
	for asked := 1; ; asked++ {
		err := h.detach(ctx, id, deviceXML, libvirt.DomainAffectLive)
		if err != nil && ctx.Err() == nil && asked == 1 && !unreachable(err) {
			// It may have let go or gone off just now. Later ones may be refused because the first is still under way.
			if now, e := h.detached(ctx, id, gone); e != nil || !now {
				return errors.Join(orRefused(err), e)
			}
		}
		if err := h.canAcknowledge(ctx, id, gone); err != nil {
			return err
		}
		select {
		case err := <-ended:
			if err != nil && ctx.Err() != nil && !unreachable(err) {
				return h.failed("unplug a device from domain "+id, fmt.Errorf("%w: it was asked %d times within %s. It may not have booted, "+
					"may use the device, or has no driver that unplugs it", ErrDetachRefused, asked, time.Since(start).Round(time.Second)))
			}
			return err
		case <-again.C:
		}
	}
}

// orRefused is the error of a request that QEMU itself has refused, such as for a device on a bus that loses none: without the guest
// that is no other than one that it did not acknowledge.
func orRefused(err error) error {
	if isCode(err, libvirt.ErrInternalError) {
		return fmt.Errorf("%w: %w", ErrDetachRefused, err)
	}
	return err
}

// canAcknowledge is ErrDetachRefused for a guest that still has the device and can't act before somebody goes on with it. On some buses
// QEMU takes a device away without its guest.
func (h *Host) canAcknowledge(ctx context.Context, id string, gone func(liveXML string) (bool, error)) error {
	state, err := h.State(ctx, id)
	if err != nil || !state.Active || state.Responsive {
		return nil //nolint:nilerr // who waits asks again
	}
	if now, err := h.detached(ctx, id, gone); now || err != nil {
		return nil //nolint:nilerr // as above
	}
	return h.failed("unplug a device from domain "+id, fmt.Errorf("%w: it is %s, so it can't", ErrDetachRefused, state.Describe()))
}

// DetachStored takes a device out of the stored definition of a domain, at one go: others may change it at the same time.
func (h *Host) DetachStored(ctx context.Context, id, deviceXML string) error {
	return h.detach(ctx, id, deviceXML, libvirt.DomainAffectConfig)
}

func (h *Host) detach(ctx context.Context, id, deviceXML string, from libvirt.DomainModificationImpact) error {
	return domainDo(ctx, h, "unplug a device from domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDetachDeviceFlags(d, deviceXML, uint32(from))
	})
}

// ErrLocked is the error of a guest that does not give the medium of a CD-ROM drive up.
var ErrLocked = errors.New("the guest has locked the drive's tray and does not give the medium up. Unmount it in the guest, and apply again")

// ChangeMedium puts the medium of deviceXML, a drive that a running domain has, into that drive, or takes the medium out
// when deviceXML has none. The stored definition stays as it is. libvirt takes the same file for the same medium, also
// when it was made anew: that has to be taken out first. QEMU asks a guest that has locked the tray: one with udev gives the
// medium up, even a mounted one; another one keeps it, and after a few seconds that is ErrLocked.
func (h *Host) ChangeMedium(ctx context.Context, id, deviceXML string) error {
	for left := trayTries; ; left-- {
		err := h.changeMedium(ctx, id, deviceXML, libvirt.DomainDeviceModifyLive)
		if !isCode(err, libvirt.ErrInternalError) || left == 0 {
			return orLocked(deviceXML, err)
		}
		select {
		case <-time.After(trayPause):
		case <-ctx.Done():
			return err
		}
	}
}

// A guest that boots may close the tray again while its medium is taken out, which libvirt has no code of its own for. It is
// asked again as often as this.
const (
	trayTries = 3
	trayPause = time.Second
)

// orLocked is the error of a change, which tells of the tray only where the change was to take a medium out: what can't be
// inserted is something else.
func orLocked(deviceXML string, err error) error {
	if isEject := !strings.Contains(deviceXML, "<source"); isEject && isCode(err, libvirt.ErrOperationFailed) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}

// ChangeStoredMedium is ChangeMedium for the stored definition of a domain.
func (h *Host) ChangeStoredMedium(ctx context.Context, id, deviceXML string) error {
	return h.changeMedium(ctx, id, deviceXML, libvirt.DomainDeviceModifyConfig)
}

// ChangeDevice changes a device that a running domain has; the stored definition stays as it is.
func (h *Host) ChangeDevice(ctx context.Context, id, deviceXML string) error {
	return domainDo(ctx, h, "change a device of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainUpdateDeviceFlags(d, deviceXML, libvirt.DomainDeviceModifyLive)
	})
}

func (h *Host) changeMedium(ctx context.Context, id, deviceXML string, in libvirt.DomainDeviceModifyFlags) error {
	return domainDo(ctx, h, "change the medium in a drive of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainUpdateDeviceFlags(d, deviceXML, in)
	})
}

func (h *Host) detached(ctx context.Context, id string, gone func(string) (bool, error)) (bool, error) {
	state, err := h.State(ctx, id)
	if errors.Is(err, ErrNotFound) || err == nil && !state.Active {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	live, err := h.LiveXML(ctx, id)
	if err != nil {
		return false, err
	}
	return gone(live)
}

// SetLiveMetadata replaces the element of a namespace in the metadata of a running domain; the stored definition stays
// as it is.
func (h *Host) SetLiveMetadata(ctx context.Context, id, namespace, prefix, element string) error {
	return domainDo(ctx, h, "note what is plugged into domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetMetadata(d, int32(libvirt.DomainMetadataElement), libvirt.OptString{element},
			libvirt.OptString{prefix}, libvirt.OptString{namespace}, libvirt.DomainAffectLive)
	})
}

// AwaitDevice returns when a running domain has opened a disk. Unlike DeviceSize, it has libvirt open nothing: what has the disk's path now may be a
// FIFO, at which libvirt would wait with the domain locked.
func (h *Host) AwaitDevice(ctx context.Context, id, target string) error {
	return domainDo(ctx, h, "look at disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		_, _, _, _, _, err := l.DomainBlockStats(d, target)
		return err
	})
}

// DeviceSize is the capacity, in bytes, of a disk of a running domain, as its guest sees it.
func (h *Host) DeviceSize(ctx context.Context, id, target string) (int64, error) {
	return onDomain(ctx, h, "look at disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (int64, error) {
		_, capacity, _, err := l.DomainGetBlockInfo(d, target, 0)
		return int64(capacity), err
	})
}

// GrowDevice makes a disk of a running domain larger, to a size in bytes. One that has that size or more is left alone:
// libvirt would shrink it without asking.
func (h *Host) GrowDevice(ctx context.Context, id, target string, bytes int64) error {
	now, err := h.DeviceSize(ctx, id, target)
	if err != nil || now >= bytes {
		return err
	}
	return domainDo(ctx, h, "grow disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainBlockResize(d, target, uint64(bytes), libvirt.DomainBlockResizeBytes)
	})
}
