//go:build linux

package main

import (
	"net"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
)

func answer(t *testing.T, modifiers ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	a, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 5))}, modifiers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLeasedPrefix(t *testing.T) {
	for _, try := range []struct {
		answer *dhcpv4.DHCPv4
		want   string
	}{
		{answer(t, dhcpv4.WithNetmask(net.CIDRMask(20, 32))), "10.0.0.5/20"},
		{answer(t), "10.0.0.5/8"},
	} {
		if got, err := leasedPrefix(try.answer); err != nil || got.String() != try.want {
			t.Errorf("%v, %v", got, err)
		}
	}
	if got, err := leasedPrefix(answer(t, dhcpv4.WithYourIP(net.IPv4zero))); err == nil {
		t.Error(got)
	}
}

func TestLeasedRoutes(t *testing.T) {
	router := dhcpv4.WithRouter(net.IPv4(10, 0, 0, 1))
	if got := leasedRoutes(answer(t, router)); len(got) != 1 || got[0].Dest != nil || !got[0].Router.Equal(net.IPv4(10, 0, 0, 1)) {
		t.Errorf("%v", got)
	}
	classless := &dhcpv4.Route{Dest: &net.IPNet{IP: net.IPv4(10, 9, 0, 0).To4(), Mask: net.CIDRMask(16, 32)}, Router: net.IPv4(10, 0, 0, 2)}
	if got := leasedRoutes(answer(t, router, dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(classless)))); len(got) != 1 || got[0].Dest == nil {
		t.Errorf("%v", got)
	}
	if got := leasedRoutes(answer(t)); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestRenewAfter(t *testing.T) {
	start := time.Unix(1e9, 0)
	lease := &nclient4.Lease{CreationTime: start, ACK: answer(t, dhcpv4.WithLeaseTime(3600))}
	for passed, want := range map[time.Duration]time.Duration{
		0: 30 * time.Minute, 30 * time.Minute: 15 * time.Minute, 59 * time.Minute: time.Minute, 2 * time.Hour: time.Minute,
	} {
		if got := renewAfter(lease, start.Add(passed)); got != want {
			t.Errorf("after %v: %v", passed, got)
		}
	}
	if got := renewAfter(nil, start); got != shortestRenewal {
		t.Error(got)
	}
	if isOver(lease, start.Add(time.Hour)) || !isOver(lease, start.Add(time.Hour+1)) {
		t.Error("a lease is over after its time")
	}
}

func TestInterfaceOf(t *testing.T) {
	all := []guestinit.Interface{{MAC: "52-54-00-00-00-0A", Gateway: "a"}, {MAC: "52:54:00:00:00:0b", Gateway: "b"}}
	mac, err := net.ParseMAC("52:54:00:00:00:0a")
	if err != nil {
		t.Fatal(err)
	}
	if got, found := interfaceOf(all, mac); !found || got.Gateway != "a" {
		t.Errorf("%+v, %v", got, found)
	}
	if got, found := interfaceOf(all[1:], mac); found {
		t.Errorf("%+v", got)
	}
}
