package host

import (
	"context"
	"strings"

	"github.com/digitalocean/go-libvirt"
)

// Lease identifies a DHCP lease of one of libvirt's networks.
type Lease struct{ MAC, IP string }

// Leases are the ends of the DHCP leases of all active networks of libvirt, as Unix times; 0 is a lease without end. A renewed lease has
// another end.
func (h *Host) Leases(ctx context.Context) (map[Lease]int64, error) {
	return call(ctx, h, "list the DHCP leases", func(l *libvirt.Libvirt) (map[Lease]int64, error) {
		networks, _, err := l.ConnectListAllNetworks(1, libvirt.ConnectListNetworksActive)
		ends := map[Lease]int64{}
		for _, network := range networks {
			leases, _, failed := l.NetworkGetDhcpLeases(network, nil, 1, 0)
			if isCode(failed, libvirt.ErrNoNetwork) || isCode(failed, libvirt.ErrOperationInvalid) {
				continue // it was removed or stopped since
			}
			if failed != nil {
				return nil, failed
			}
			for _, lease := range leases {
				if len(lease.Mac) == 1 {
					ends[Lease{strings.ToLower(lease.Mac[0]), lease.Ipaddr}] = lease.Expirytime
				}
			}
		}
		return ends, err
	})
}
