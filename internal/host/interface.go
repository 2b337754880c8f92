package host

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// agentTime is what a guest's agent gets to answer. libvirt gives one up by itself that says nothing within five seconds, but
// waits for ever for one that has said something: that costs the connection.
const agentTime = 6 * time.Second

// ChangeInterface has a network interface of a running domain, which deviceXML names by its address, on another network or
// bridge, or with another link, without the guest losing it. The stored definition stays as it is.
func (h *Host) ChangeInterface(ctx context.Context, id, deviceXML string) error {
	return domainDo(ctx, h, "change a network interface of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return l.DomainUpdateDeviceFlags(d, deviceXML, libvirt.DomainDeviceModifyLive)
	})
}

// Addresses are the IP addresses of a running domain's interfaces, by MAC address: what the guest's agent says, if one is
// connected and answers, or else the leases of libvirt's networks, and for interfaces without one what the host has seen.
// Those of one link only are left out. A source that says nothing is no error: most guests have no agent.
func (h *Host) Addresses(ctx context.Context, id string, agent bool) map[string][]string {
	if agent {
		bounded, cancel := context.WithTimeout(ctx, agentTime)
		defer cancel()
		if all, err := h.addresses(bounded, id, libvirt.DomainInterfaceAddressesSrcAgent); err == nil {
			return all
		}
	}
	all := map[string][]string{}
	for _, source := range []libvirt.DomainInterfaceAddressesSource{libvirt.DomainInterfaceAddressesSrcLease, libvirt.DomainInterfaceAddressesSrcArp} {
		found, _ := h.addresses(ctx, id, source) // a driver without networks has no leases
		for mac, addresses := range found {
			if len(all[mac]) == 0 {
				all[mac] = addresses
			}
		}
	}
	return all
}

func (h *Host) addresses(ctx context.Context, id string, source libvirt.DomainInterfaceAddressesSource) (map[string][]string, error) {
	interfaces, err := onDomain(ctx, h, "look for the addresses of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) ([]libvirt.DomainInterface, error) {
		return l.DomainInterfaceAddresses(d, uint32(source), 0)
	})
	if err != nil {
		return nil, err
	}
	all := map[string][]netip.Addr{}
	for _, i := range interfaces {
		for _, mac := range i.Hwaddr {
			for _, a := range i.Addrs {
				if ip, ok := reachable(a.Addr); ok {
					all[strings.ToLower(mac)] = append(all[strings.ToLower(mac)], ip)
				}
			}
		}
	}
	sorted := map[string][]string{}
	for mac, addresses := range all {
		slices.SortFunc(addresses, netip.Addr.Compare) // those of IPv4 are first
		for _, a := range slices.Compact(addresses) {
			sorted[mac] = append(sorted[mac], a.String())
		}
	}
	return sorted, nil
}

// reachable is an address that others than the guest itself can use. An agent says whatever its guest likes: the zone of an IPv6
// address is free text.
func reachable(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip, err == nil && ip.Zone() == "" && !ip.IsLoopback() && !ip.IsLinkLocalUnicast()
}
