package host

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/digitalocean/go-libvirt"
)

// agentTime is the timeout of a guest agent. libvirt has its own timeout of five seconds for an agent that has never answered, but waits
// forever for one that has: that costs the connection.
const agentTime = 6 * time.Second

// ChangeInterface moves a network interface of a running domain, which deviceXML identifies by its address, to another network or bridge,
// or changes its link state, without an unplug. The stored definition is not changed.
func (h *Host) ChangeInterface(ctx context.Context, id, deviceXML string) error {
	return domainDo(ctx, h, "change a network interface of domain", id, func(l *libvirt.Libvirt, d libvirt.Domain) error {
		return explainNetworks(l, l.DomainUpdateDeviceFlags(d, deviceXML, libvirt.DomainDeviceModifyLive), deviceXML)
	})
}

// Addresses are the IP addresses of a running domain's interfaces, by MAC address: those of the guest agent, if it is connected and
// answers, or else the leases of libvirt's networks, and for interfaces without a lease those in the host's ARP table. Link-local addresses
// are left out. A source without an answer is not an error, because most guests have no agent.
func (h *Host) Addresses(ctx context.Context, id string, agent bool) map[string][]string {
	if agent {
		bounded, cancel := context.WithTimeout(ctx, agentTime)
		defer cancel()
		if all, err := h.addresses(bounded, id, libvirt.DomainInterfaceAddressesSrcAgent); err == nil {
			return all
		}
	}
	all := map[string][]string{}
	for _, source := range []libvirt.DomainInterfaceAddressesSource{
		libvirt.DomainInterfaceAddressesSrcLease,
		libvirt.DomainInterfaceAddressesSrcArp,
	} {
		found, _ := h.addresses(ctx, id, source) // a host without libvirt networks has no leases
		for mac, addresses := range found {
			if len(all[mac]) == 0 {
				all[mac] = addresses
			}
		}
	}
	return all
}

func (h *Host) addresses(ctx context.Context, id string, source libvirt.DomainInterfaceAddressesSource) (map[string][]string, error) {
	interfaces, err := onDomain(ctx, h, "look for the addresses of domain", id,
		func(l *libvirt.Libvirt, d libvirt.Domain) ([]libvirt.DomainInterface, error) {
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
		slices.SortFunc(addresses, netip.Addr.Compare) // IPv4 first
		for _, a := range slices.Compact(addresses) {
			sorted[mac] = append(sorted[mac], a.String())
		}
	}
	return sorted, nil
}

// reachable returns an address if it can be reached from outside of the guest. A guest controls its agent's answer: the zone of an IPv6
// address is free text.
func reachable(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip, err == nil && ip.Zone() == "" && !ip.IsLoopback() && !ip.IsLinkLocalUnicast()
}
