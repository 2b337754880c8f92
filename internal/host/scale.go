package host

import (
	"context"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// balloonTime is what a guest gets to take or give up memory. QEMU tells of it once a second.
const balloonTime = 10 * time.Second

// SetVCPUs gives a running domain so many processors; the stored definition stays as it is.
func (h *Host) SetVCPUs(ctx context.Context, id string, n uint) error {
	return domainDo(ctx, h, "give processors to domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetVcpusFlags(d, uint32(n), uint32(libvirt.DomainVCPULive))
	})
}

// SetMemory gives a running domain so many KiB through its balloon, and waits for a while until there, which is asked with
// the live XML, says that the guest has followed. One that does not is no error: it may not have the driver. The stored
// definition stays as it is.
func (h *Host) SetMemory(ctx context.Context, id string, kib uint, there func(liveXML string) (bool, error)) error {
	err := domainDo(ctx, h, "change the memory of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainSetMemoryFlags(d, uint64(kib), uint32(libvirt.DomainMemLive))
	})
	if err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, balloonTime)
	defer cancel()
	err = h.Await(patient, id, func(ctx context.Context) (bool, error) { return h.detached(ctx, id, there) })
	if patient.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}
