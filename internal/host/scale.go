package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/digitalocean/go-libvirt"
)

const (
	// balloonTime is how long a guest's balloon may take to get its size.
	balloonTime = 10 * time.Second
	// changeTime is how long a balloon may stay as it is while it gets its size: QEMU sends an event once a second.
	changeTime = 3 * time.Second
	// onlineTime is how long a guest may take to put a new processor online.
	onlineTime = 10 * time.Second
)

// SetVCPUs sets the number of processors of a running domain; the stored definition is not changed.
func (h *Host) SetVCPUs(ctx context.Context, id string, n uint) error {
	return domainDo(ctx, h, "give processors to domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetVcpusFlags(d, uint32(n), uint32(libvirt.DomainVCPULive))
	})
}

// SetMemory sets the memory of a running domain in KiB through its balloon, and waits up to balloonTime until there, which is called with
// the live XML, is true. A guest that does not respond is no error, because it may not have the driver. The stored definition is not
// changed.
func (h *Host) SetMemory(ctx context.Context, id string, kib uint, there func(liveXML string) (bool, error)) error {
	err := domainDo(ctx, h, "change the memory of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetMemoryFlags(d, uint64(kib), uint32(libvirt.DomainMemLive))
	})
	if err != nil {
		return err
	}
	_, err = h.awaitMemory(ctx, id, balloonTime, there)
	return err
}

// MemoryChanges waits up to changeTime until other, which is called with the live XML of a running domain, is true, and returns whether it
// was: then the guest's balloon has not reached its size yet.
func (h *Host) MemoryChanges(ctx context.Context, id string, other func(liveXML string) (bool, error)) (bool, error) {
	return h.awaitMemory(ctx, id, changeTime, other)
}

// awaitMemory returns whether there was true within that time, or the domain is off.
func (h *Host) awaitMemory(ctx context.Context, id string, most time.Duration, there func(liveXML string) (bool, error)) (bool, error) {
	waitCtx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := h.Await(waitCtx, id, func(ctx context.Context) (bool, error) { return h.detached(ctx, id, there) })
	if waitCtx.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// PinVCPU has a processor of a running domain run on these processors of the host; the stored definition is not changed.
func (h *Host) PinVCPU(ctx context.Context, id string, vcpu uint, cpus map[uint]bool) error {
	bits := make([]byte, slices.Max(slices.Collect(maps.Keys(cpus)))/8+1)
	for n := range cpus {
		bits[n/8] |= 1 << (n % 8)
	}
	return domainDo(ctx, h, fmt.Sprintf("pin processor %d of domain", vcpu), id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainPinVcpuFlags(d, uint32(vcpu), bits, uint32(libvirt.DomainAffectLive))
	})
}

// actions are libvirt's numbers of what is done when a guest reboots or panics.
var actions = map[string]libvirt.DomainLifecycleAction{
	"destroy": libvirt.DomainLifecycleActionDestroy, "restart": libvirt.DomainLifecycleActionRestart,
	"preserve": libvirt.DomainLifecycleActionPreserve, "coredump-destroy": libvirt.DomainLifecycleActionCoredumpDestroy,
	"coredump-restart": libvirt.DomainLifecycleActionCoredumpRestart,
}

// SetAction sets what is done when the guest of a running domain panics, or else reboots; the stored definition is not changed.
func (h *Host) SetAction(ctx context.Context, id string, panics bool, action string) error {
	on := libvirt.DomainLifecycleReboot
	if panics {
		on = libvirt.DomainLifecycleCrash
	}
	return domainDo(ctx, h, "set the action "+action+" of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetLifecycleAction(d, uint32(on), uint32(actions[action]), libvirt.DomainAffectLive)
	})
}
