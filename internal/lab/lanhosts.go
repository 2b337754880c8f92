package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
)

// lanHosts are the names of the lab's hosts whose guests this machine reaches.
var lanHosts = [2]string{"host-f", "host-g"}

// lans begins the range of their networks' addresses, which is reserved for documentation (RFC 5737), so that no other machine uses it.
var lans = netip.MustParseAddr("198.51.100.0")

// lanPrefix leaves six addresses to each network.
const (
	lanPrefix                      = 29
	lanMachine, lanHost, lanGuests = 1, 2, 3
)

// LANHost is a host whose Bridge this machine is connected with: guests on it and programs of this machine reach each other.
type LANHost struct {
	*Host
	// GuestAddress is an address for a guest, with the length of the network's prefix.
	GuestAddress netip.Prefix
	// Portal is the address of the lab's iSCSI server for this host.
	Portal string

	number uint16
	portal *forward
}

// LANHosts returns host-f and host-g, which the first call starts. Their networks are removed with them.
func (l *Lab) LANHosts(ctx context.Context) (hosts [2]*LANHost, err error) {
	for n, name := range lanHosts {
		if hosts[n], err = l.lan[n].get(ctx, func(ctx context.Context) (*LANHost, error) { return l.startLANHost(ctx, name) }); err != nil {
			return hosts, err
		}
	}
	return hosts, nil
}

func (l *Lab) startLANHost(ctx context.Context, name string) (*LANHost, error) {
	dir, err := l.serverFolder(name)
	if err != nil {
		return nil, err
	}
	h := &LANHost{Host: newHost(dir, name, l.Guest)}
	file := filepath.Join(dir, "network")
	h.within = "nsenter --net=" + quote(file) + " "
	h.prepare = func(ctx context.Context) error { return h.connectLAN(ctx, file) }
	if err := h.run(ctx, l.Dir); err != nil {
		return h, err
	}
	if h.portal, err = newForward(ctx, h.address(lanMachine), l.Target.Portal); err != nil {
		return h, err
	}
	h.Portal = h.portal.Addr().String()
	return h, nil
}

// connectLAN makes the host's network, with a bridge that the link to this machine ends at.
func (h *LANHost) connectLAN(ctx context.Context, file string) (err error) {
	if err := h.sandbox.run(ctx, fmt.Sprintf("touch %[1]s && unshare --net=%[1]s ip link set lo up", quote(file))); err != nil {
		return fmt.Errorf("make a network: %w", err)
	}
	var link string
	if link, h.number, err = addLink(ctx, h.sandbox, file, "vclan", lanPrefix-24); err != nil {
		return err
	}
	h.GuestAddress = netip.PrefixFrom(h.address(lanGuests), lanPrefix)
	for _, command := range []string{
		fmt.Sprintf("ip address add %s/%d dev %s", h.address(lanMachine), lanPrefix, link),
		"ip link set " + link + " up",
		h.within + "ip link add " + Bridge + " type bridge",
		h.within + "ip link set eth0 up master " + Bridge,
		h.within + fmt.Sprintf("ip address add %s/%d dev %s", h.address(lanHost), lanPrefix, Bridge),
		h.within + "ip link set " + Bridge + " up",
	} {
		if err := h.sandbox.run(ctx, command); err != nil {
			return fmt.Errorf("connect a network: %w", err)
		}
	}
	return nil
}

// address is an address of the host's network.
func (h *LANHost) address(number uint32) netip.Addr {
	return address(lans, uint32(h.number)<<(32-lanPrefix)+number)
}

func (h *LANHost) close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	var err error
	if h.portal != nil {
		if err = h.portal.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
	}
	return errors.Join(err, h.Host.close(ctx))
}
