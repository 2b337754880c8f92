package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// unplugInterval is how long a guest may take to acknowledge an unplug before the request is repeated: a booting guest loses it.
const unplugInterval = 5 * time.Second

// Attach plugs a device into a running domain; the stored definition is not changed.
func (h *Host) Attach(ctx context.Context, id, deviceXML string) error {
	return domainDo(ctx, h, "plug a device into domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return explainNetworks(l, l.DomainAttachDeviceFlags(d, deviceXML, uint32(libvirt.DomainAffectLive)), deviceXML)
	})
}

// ErrDetachRefused is the error of a guest that did not acknowledge an unplug.
var ErrDetachRefused = errors.New("the guest did not acknowledge the unplug")

// leastUnplugTime is the minimum time for the acknowledgement of an unplug, if the operation's timeout allows it.
const leastUnplugTime = time.Minute

// unplugTime is how long an acknowledgement is waited for: a guest answers within seconds, or when it has booted, or never. It is a fifth
// of the operation's timeout, so that a longer timeout also counts here.
func unplugTime(ctx context.Context) time.Duration {
	left := timeLeft(ctx)
	return max(left/5, min(left, leastUnplugTime))
}

// Detach unplugs a device from a running domain and waits until gone, which is called with the live XML, is true: libvirt itself returns as
// soon as the request is sent. The request is repeated every few seconds. ErrDetachRefused is the error of a guest that does not
// acknowledge, or can't because it is paused. The stored definition is not changed. A domain that ends meanwhile is a success.
func (h *Host) Detach(ctx context.Context, id, deviceXML string, gone func(liveXML string) (bool, error)) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, unplugTime(ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- h.Await(ctx, id, func(ctx context.Context) (bool, error) { return h.detached(ctx, id, gone) })
	}()
	again := time.NewTicker(unplugInterval) //nolint:forbidigo // it repeats the request; the acknowledgement is an event
	defer again.Stop()
	for asked := 1; ; asked++ {
		err := h.detach(ctx, id, deviceXML, libvirt.DomainAffectLive)
		if err != nil && ctx.Err() == nil && asked == 1 && !unreachable(err) {
			// The guest may have acknowledged, or ended, meanwhile. QEMU may refuse a repeated request while the first one is pending.
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
				return h.failed("unplug a device from domain "+id, fmt.Errorf("%w: it was asked %d times within %s. It may not have "+
					"booted, may use the device, or has no driver that unplugs it", ErrDetachRefused, asked, time.Since(start).
					Round(time.Second)))
			}
			return err
		case <-again.C:
		}
	}
}

// orRefused returns ErrDetachRefused for a request that QEMU itself has refused, such as for a device on a bus without hot-unplug: the
// remedy is the same as if the guest does not acknowledge.
func orRefused(err error) error {
	if isCode(err, libvirt.ErrInternalError) {
		return fmt.Errorf("%w: %w", ErrDetachRefused, err)
	}
	return err
}

// canAcknowledge is ErrDetachRefused for a paused guest that still has the device, because it can't act before it is resumed. On some buses
// QEMU removes a device without its guest.
func (h *Host) canAcknowledge(ctx context.Context, id string, gone func(liveXML string) (bool, error)) error {
	state, err := h.State(ctx, id)
	if err != nil || !state.Active || state.Responsive {
		return nil //nolint:nilerr // the caller waits, and checks again
	}
	if now, err := h.detached(ctx, id, gone); now || err != nil {
		return nil //nolint:nilerr // as above
	}
	return h.failed("unplug a device from domain "+id, fmt.Errorf("%w: it is %s, so it can't", ErrDetachRefused, state.Describe()))
}

// DetachStored removes a device from the stored definition of a domain in one call, because other tools may change it at the same time.
func (h *Host) DetachStored(ctx context.Context, id, deviceXML string) error {
	return h.detach(ctx, id, deviceXML, libvirt.DomainAffectConfig)
}

func (h *Host) detach(ctx context.Context, id, deviceXML string, from libvirt.DomainModificationImpact) error {
	return domainDo(ctx, h, "unplug a device from domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainDetachDeviceFlags(d, deviceXML, uint32(from))
	})
}

// ErrLocked is the error of a guest that does not release the medium of a CD-ROM drive.
var ErrLocked = errors.New("the guest has locked the drive's tray and does not give the medium up. Unmount it in the guest, and apply " +
	"again")

// ChangeMedium inserts the medium of deviceXML, a drive of a running domain, into that drive, or ejects the medium if deviceXML has none.
// The stored definition is not changed. libvirt takes the same file for the same medium, also if it was recreated: eject it first. QEMU
// asks a guest that has locked the tray: one with udev releases the medium, even a mounted one; if it does not, the error is ErrLocked
// after some seconds.
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

// trayTries is how often an eject is tried: a booting guest may close the tray again meanwhile, for which libvirt has no error code.
const (
	trayTries = 3
	trayPause = time.Second
)

// orLocked is the error of a change of a medium. It is ErrLocked only for an eject: an insert fails for other reasons.
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

// ChangeDevice changes a device of a running domain; the stored definition is not changed.
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

// detached reports whether gone is true, or the domain has ended.
func (h *Host) detached(ctx context.Context, id string, gone func(string) (bool, error)) (is bool, err error) {
	live, err := h.LiveXML(ctx, id)
	if err == nil {
		is, err = gone(live)
	}
	var state State
	if err == nil && !is {
		state, err = h.State(ctx, id)
		is = !state.Active
	}
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return err == nil && is, err
}

// SetLiveMetadata replaces the element of a namespace in the metadata of a running domain; the stored definition is not changed.
func (h *Host) SetLiveMetadata(ctx context.Context, id, namespace, prefix, element string) error {
	return domainDo(ctx, h, "note what is plugged into domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetMetadata(d, int32(libvirt.DomainMetadataElement), libvirt.OptString{element},
			libvirt.OptString{prefix}, libvirt.OptString{namespace}, libvirt.DomainAffectLive)
	})
}

// AwaitDevice returns when a running domain has opened a disk. Unlike DeviceSize, it does not make libvirt open the path, which may be a
// FIFO by now, at which libvirt would block with the domain locked.
func (h *Host) AwaitDevice(ctx context.Context, id, target string) error {
	return domainDo(ctx, h, "look at disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		_, _, _, _, _, err := l.DomainBlockStats(d, target)
		return err
	})
}

// SetIOTune sets the limits of a running domain's disk, by libvirt's names; 0 is none. The stored definition is not changed.
func (h *Host) SetIOTune(ctx context.Context, id, target string, limits map[string]uint64) error {
	var all []libvirt.TypedParam
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		all = append(all, libvirt.TypedParam{Field: name, Value: *libvirt.NewTypedParamValueUllong(limits[name])})
	}
	return domainDo(ctx, h, "limit disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetBlockIOTune(d, target, all, uint32(libvirt.DomainAffectLive))
	})
}

// DeviceSize returns the capacity, in bytes, of a running domain's disk, as its guest sees it.
func (h *Host) DeviceSize(ctx context.Context, id, target string) (int64, error) {
	return onDomain(ctx, h, "look at disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) (int64, error) {
		_, capacity, _, err := l.DomainGetBlockInfo(d, target, 0)
		return int64(capacity), err
	})
}

// GrowDevice grows a disk of a running domain to a size in bytes. A disk of that size or more is left alone, because libvirt would shrink
// it.
func (h *Host) GrowDevice(ctx context.Context, id, target string, bytes int64) error {
	now, err := h.DeviceSize(ctx, id, target)
	if err != nil || now >= bytes {
		return err
	}
	return domainDo(ctx, h, "grow disk "+target+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainBlockResize(d, target, uint64(bytes), libvirt.DomainBlockResizeBytes)
	})
}
