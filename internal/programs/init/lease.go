//go:build linux

package main

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// A smaller MTU than IPv4's least is a mistake of the server's.
const smallestMTU = 576

func leasedPrefix(answer *dhcpv4.DHCPv4) (netip.Prefix, error) {
	address, valid := netip.AddrFromSlice(answer.YourIPAddr.To4())
	if !valid || address.IsUnspecified() {
		return netip.Prefix{}, fmt.Errorf("the DHCP server %v has given no address", answer.ServerIdentifier())
	}
	mask := answer.SubnetMask()
	if mask == nil {
		mask = net.IP(address.AsSlice()).DefaultMask()
	}
	bits, _ := mask.Size()
	return netip.PrefixFrom(address, bits), nil
}

// leasedRoutes are the classless ones if there are any: RFC 3442 says to ignore the router then.
func leasedRoutes(answer *dhcpv4.DHCPv4) []*dhcpv4.Route {
	if routes := answer.ClasslessStaticRoute(); len(routes) > 0 {
		return routes
	}
	if routers := answer.Router(); len(routers) > 0 {
		return []*dhcpv4.Route{{Router: routers[0]}}
	}
	return nil
}

func leasedDomains(answer *dhcpv4.DHCPv4) []string {
	if search := answer.DomainSearch(); search != nil && len(search.Labels) > 0 {
		return search.Labels
	}
	if name := answer.DomainName(); name != "" {
		return []string{name}
	}
	return nil
}

func addressTexts(addresses []net.IP) []string {
	var all []string
	for _, address := range addresses {
		all = append(all, address.String())
	}
	return all
}
