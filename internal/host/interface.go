package host

import (
	"context"

	"github.com/digitalocean/go-libvirt"
)

// ChangeInterface has a network interface of a running domain, which deviceXML names by its address, on another network or
// bridge, or with another link, without the guest losing it. The stored definition stays as it is.
func (h *Host) ChangeInterface(ctx context.Context, id, deviceXML string) error {
	return tell(ctx, h, "change a network interface of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainUpdateDeviceFlags(d, deviceXML, libvirt.DomainDeviceModifyLive)
	})
}
