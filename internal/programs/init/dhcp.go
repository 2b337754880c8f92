//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
)

const (
	dhcpPatience = 15 * time.Second
	// After a failed renewal, and for servers that want to be asked all the time.
	shortestRenewal = time.Minute
	defaultLease    = time.Hour
)

// A dhcpClient keeps the address of an interface.
type dhcpClient struct {
	link     netlink.Link
	servers  []string // instead of those of the lease
	hostname string   // for the server's names
	resolver *resolver
	address  netip.Prefix
}

// configureByDHCP returns when the interface has an address, which is then renewed as long as the machine runs. If no server answers, it
// returns an error, and goes on asking.
func configureByDHCP(ctx context.Context, c *dhcpClient) error {
	limit, cancel := context.WithTimeout(ctx, dhcpPatience)
	defer cancel()
	lease, err := c.request(limit)
	go func() {
		defer sayPanic()
		c.keep(ctx, lease)
	}()
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no DHCP server has answered for %v: the program starts without an address, and gets one when there is a server",
			dhcpPatience)
	}
	return err
}

func (c *dhcpClient) request(ctx context.Context) (*nclient4.Lease, error) {
	return c.ask(func(client *nclient4.Client) (*nclient4.Lease, error) { return client.Request(ctx, c.options()...) })
}

// options are what servers send only if they are asked for it, and the name by which they may list the machine.
func (c *dhcpClient) options() []dhcpv4.Modifier {
	options := []dhcpv4.Modifier{dhcpv4.WithRequestedOptions(
		dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter, dhcpv4.OptionDomainName, dhcpv4.OptionDomainNameServer, dhcpv4.OptionInterfaceMTU,
		dhcpv4.OptionClasslessStaticRoute, dhcpv4.OptionDNSDomainSearchList,
	)}
	if c.hostname != "" {
		options = append(options, dhcpv4.WithOption(dhcpv4.OptHostName(c.hostname)))
	}
	return options
}

// ask has a socket only as long as an answer is waited for: an open one would wake the machine for each packet.
func (c *dhcpClient) ask(question func(*nclient4.Client) (*nclient4.Lease, error)) (*nclient4.Lease, error) {
	const firstTimeout, tries = time.Second, 4
	attributes := c.link.Attrs()
	client, err := nclient4.New(attributes.Name, nclient4.WithHWAddr(attributes.HardwareAddr), nclient4.WithTimeout(firstTimeout),
		nclient4.WithRetry(tries))
	if err != nil {
		return nil, fmt.Errorf("ask for an address by DHCP: %w", err)
	}
	defer client.Close() //nolint:errcheck // nothing is sent by it
	lease, err := question(client)
	if err != nil {
		return nil, fmt.Errorf("ask for an address by DHCP: %w", err)
	}
	return lease, c.apply(lease.ACK)
}

// keep renews a lease at half of its time. One that is refused, or over, is replaced by a new one.
func (c *dhcpClient) keep(ctx context.Context, lease *nclient4.Lease) {
	for {
		timer := time.NewTimer(renewAfter(lease, time.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if lease == nil || isOver(lease, time.Now()) {
			lease, _ = c.request(ctx)
			continue
		}
		renewed, err := c.ask(func(client *nclient4.Client) (*nclient4.Lease, error) {
			return client.Renew(ctx, lease, c.options()...)
		})
		var refused *nclient4.ErrNak
		switch {
		case err == nil:
			lease = renewed
		case errors.As(err, &refused):
			lease, _ = c.request(ctx)
		}
	}
}

// renewAfter is half of the lease's time, or of what remains of it.
func renewAfter(lease *nclient4.Lease, now time.Time) time.Duration {
	if lease == nil {
		return shortestRenewal
	}
	remaining := lease.CreationTime.Add(lease.ACK.IPAddressLeaseTime(defaultLease)).Sub(now)
	return max(remaining/2, shortestRenewal)
}

func isOver(lease *nclient4.Lease, now time.Time) bool {
	return now.After(lease.CreationTime.Add(lease.ACK.IPAddressLeaseTime(defaultLease)))
}

func (c *dhcpClient) apply(answer *dhcpv4.DHCPv4) error {
	prefix, err := leasedPrefix(answer)
	if err != nil {
		return err
	}
	if c.address.IsValid() && c.address != prefix {
		former := &net.IPNet{IP: c.address.Addr().AsSlice(), Mask: net.CIDRMask(c.address.Bits(), c.address.Addr().BitLen())}
		if err := netlink.AddrDel(c.link, &netlink.Addr{IPNet: former}); err != nil {
			return fmt.Errorf("take the address %s from it: %w", c.address, err)
		}
	}
	if err := addAddress(c.link, prefix); err != nil {
		return err
	}
	c.address = prefix
	if mtu, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, answer.Options); err == nil && mtu >= smallestMTU {
		if err := netlink.LinkSetMTU(c.link, int(mtu)); err != nil {
			return fmt.Errorf("set its MTU to %d: %w", mtu, err)
		}
	}
	for _, route := range leasedRoutes(answer) {
		if err := addRoute(c.link, route.Dest, route.Router); err != nil {
			return err
		}
	}
	servers, search := c.servers, leasedDomains(answer)
	if len(servers) == 0 {
		servers = addressTexts(answer.DNS())
	}
	return c.resolver.set(c.link.Attrs().Name, servers, search)
}
