//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

// configureNetwork prints what fails: the program may do without a network, and its owner sees more while it runs.
func (m *machine) configureNetwork(ctx context.Context) {
	m.setHostname()
	if err := writeEtc(sysroot, "hosts", hostsFile(m.config.Hostname)); err != nil {
		say("%v", err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		say("list the network interfaces: %v", err)
		return
	}
	resolver := &resolver{root: sysroot}
	var all sync.WaitGroup
	for _, link := range links {
		all.Go(func() {
			defer sayPanic()
			if err := m.configureLink(ctx, link, resolver); err != nil {
				say("network interface %s: %v", link.Attrs().Name, err)
			}
		})
	}
	all.Wait()
	if err := resolver.finish(); err != nil {
		say("%v", err)
	}
	for _, i := range missingInterfaces(m.config.Interfaces, links) {
		say("no network interface has the MAC address %s", i.MAC)
	}
}

func (m *machine) configureLink(ctx context.Context, link netlink.Link, to *resolver) error {
	attributes := link.Attrs()
	if attributes.Flags&net.FlagLoopback != 0 {
		return netlink.LinkSetUp(link)
	}
	const ethernet = 6
	if len(attributes.HardwareAddr) != ethernet || link.Type() != "device" {
		return nil // a tunnel that a module has made
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set it up: %w", err)
	}
	i, _ := interfaceOf(m.config.Interfaces, attributes.HardwareAddr)
	if len(i.Addresses) == 0 {
		return configureByDHCP(ctx, &dhcpClient{link: link, servers: i.Nameservers, hostname: m.config.Hostname, resolver: to})
	}
	if err := setAddresses(link, i); err != nil {
		return err
	}
	return to.set(attributes.Name, i.Nameservers, i.Search)
}

func interfaceOf(configured []guestinit.Interface, mac net.HardwareAddr) (guestinit.Interface, bool) {
	for _, i := range configured {
		if parsed, err := net.ParseMAC(i.MAC); err == nil && slices.Equal(parsed, mac) {
			return i, true
		}
	}
	return guestinit.Interface{}, false
}

func missingInterfaces(configured []guestinit.Interface, links []netlink.Link) []guestinit.Interface {
	return slices.DeleteFunc(slices.Clone(configured), func(i guestinit.Interface) bool {
		return slices.ContainsFunc(links, func(link netlink.Link) bool {
			_, found := interfaceOf([]guestinit.Interface{i}, link.Attrs().HardwareAddr)
			return found
		})
	})
}

func setAddresses(link netlink.Link, i guestinit.Interface) error {
	for _, text := range i.Addresses {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return err
		}
		if err := addAddress(link, prefix); err != nil {
			return err
		}
	}
	if i.Gateway == "" {
		return nil
	}
	return addRoute(link, nil, net.ParseIP(i.Gateway))
}

func addAddress(link netlink.Link, prefix netip.Prefix) error {
	network := &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
	address := &netlink.Addr{IPNet: network}
	if prefix.Addr().Is6() {
		// Else the program could not use the address in its first second.
		address.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrReplace(link, address); err != nil {
		return fmt.Errorf("give it the address %s: %w", prefix, err)
	}
	return nil
}

// addRoute sets a route; one without destination is the default. A gateway need not be in the interface's network, as with many hosters.
func addRoute(link netlink.Link, destination *net.IPNet, gateway net.IP) error {
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: destination, Gw: gateway}
	switch {
	case len(gateway) == 0 || gateway.IsUnspecified():
		route.Gw, route.Scope = nil, netlink.SCOPE_LINK
	default:
		route.Flags = int(netlink.FLAG_ONLINK)
	}
	if err := netlink.RouteReplace(route); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("route to %v by %v: %w", destination, gateway, err)
	}
	return nil
}

// A resolver writes resolv.conf out of what all interfaces say.
type resolver struct {
	root            string
	mutex           sync.Mutex
	order           []string
	servers, search map[string][]string
}

func (r *resolver) set(name string, servers, search []string) error {
	if len(servers)+len(search) == 0 {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.servers == nil {
		r.servers, r.search = map[string][]string{}, map[string][]string{}
	}
	if !slices.Contains(r.order, name) {
		r.order = append(r.order, name)
		slices.Sort(r.order)
	}
	r.servers[name], r.search[name] = servers, search
	var allServers, allSearch []string
	for _, name := range r.order {
		allServers, allSearch = append(allServers, r.servers[name]...), append(allSearch, r.search[name]...)
	}
	if len(allServers) == 0 {
		return nil // the image's file may have some
	}
	return writeEtc(r.root, "resolv.conf", resolvFile(unique(allServers), unique(allSearch)))
}

// finish replaces, if no interface has servers, what an earlier start has written, and a link to what only the image's own init would make.
// A file of the image stays. Programs expect one: container engines always write it.
func (r *resolver) finish() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, servers := range r.servers {
		if len(servers) > 0 {
			return nil
		}
	}
	if is, err := readBelow(r.root, "etc/resolv.conf"); err == nil && !bytes.HasPrefix(is, []byte(resolvHead)) {
		return nil
	}
	return writeEtc(r.root, "resolv.conf", resolvFile(nil, nil))
}

func unique(texts []string) []string {
	var all []string
	for _, text := range texts {
		if !slices.Contains(all, text) && !strings.ContainsAny(text, " \t\r\n\x00") {
			all = append(all, text)
		}
	}
	return all
}
