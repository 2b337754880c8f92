package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
)

// Reboot asks the guest of a domain to reboot, by its agent or its power button, and does not wait for that.
func (h *Host) Reboot(ctx context.Context, id string) error {
	return domainDo(ctx, h, "reboot domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error { return l.DomainReboot(d, 0) })
}

// Reset resets a domain as its reset button does, without its guest.
func (h *Host) Reset(ctx context.Context, id string) error {
	return domainDo(ctx, h, "reset domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error { return l.DomainReset(d, 0) })
}

// Pause stops the processors of a domain.
func (h *Host) Pause(ctx context.Context, id string) error {
	return domainDo(ctx, h, "pause domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error { return l.DomainSuspend(d) })
}

// linuxKeys is libvirt's number of the set of Linux' key codes.
const linuxKeys = 0

// SendKeys presses keys of a domain together, for a time in milliseconds, by their codes in Linux' input-event-codes.h.
func (h *Host) SendKeys(ctx context.Context, id string, keys []uint32, hold uint32) error {
	return domainDo(ctx, h, "send keys to domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSendKey(d, linuxKeys, hold, keys, 0)
	})
}
