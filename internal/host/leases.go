package host

import (
	"context"
	"slices"
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
		if err != nil {
			return nil, err
		}
		all, err := pipelined(networks, func(network libvirt.Network) ([]libvirt.NetworkDhcpLease, error) {
			leases, _, err := l.NetworkGetDhcpLeases(network, nil, 1, 0)
			if isCode(err, libvirt.ErrNoNetwork) || isCode(err, libvirt.ErrOperationInvalid) {
				return nil, nil // it was removed or stopped since
			}
			return leases, err
		})
		ends := map[Lease]int64{}
		for _, lease := range slices.Concat(all...) {
			if len(lease.Mac) == 1 {
				ends[Lease{strings.ToLower(lease.Mac[0]), lease.Ipaddr}] = lease.Expirytime
			}
		}
		return ends, err
	})
}
