package host

import (
	"context"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// balloonTime is how long a guest's balloon may take to change. QEMU sends an event once a second.
const balloonTime = 10 * time.Second

// SetVCPUs sets the number of processors of a running domain; the stored definition is not changed.
func (h *Host) SetVCPUs(ctx context.Context, id string, n uint) error {
	return domainDo(ctx, h, "give processors to domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetVcpusFlags(d, uint32(n), uint32(libvirt.DomainVCPULive))
	})
}

// SetMemory sets the memory of a running domain in KiB through its balloon, and waits up to balloonTime until there, which is called with the
// live XML, is true. A guest that does not respond is no error, because it may not have the driver. The stored definition is not changed.
func (h *Host) SetMemory(ctx context.Context, id string, kib uint, there func(liveXML string) (bool, error)) error {
	err := domainDo(ctx, h, "change the memory of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetMemoryFlags(d, uint64(kib), uint32(libvirt.DomainMemLive))
	})
	if err != nil {
		return err
	}
	waitCtx, cancel := context.WithTimeout(ctx, balloonTime)
	defer cancel()
	err = h.Await(waitCtx, id, func(ctx context.Context) (bool, error) { return h.detached(ctx, id, there) })
	if waitCtx.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}
