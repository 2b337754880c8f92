package host

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/digitalocean/go-libvirt"
)

// Kind is a kind of objects that are active or not, as in virsh's commands.
type Kind string

// The kinds.
const (
	StoragePool Kind = "pool"
	Network     Kind = "net"
)

// Presence is whether a host has a pool or network, and whether that is active.
type Presence string

// Only an active pool or network can be used.
const (
	Missing  Presence = "missing"
	Inactive Presence = "inactive"
	Active   Presence = "active"
)

// CheckConnection is the error of a host that can't be reached.
func (h *Host) CheckConnection(ctx context.Context) error {
	return do(ctx, h, "connect", func(*libvirt.Libvirt) error { return nil })
}

// Presence is that of a pool, or of one of libvirt's networks.
func (h *Host) Presence(ctx context.Context, kind Kind, name string) (Presence, error) {
	return call(ctx, h, fmt.Sprintf("look at the %s %s", kind, name), func(l *libvirt.Libvirt) (Presence, error) {
		active, err := h.isActive(ctx, l, kind, name)
		switch {
		case errors.Is(err, ErrNoPool), isCode(err, libvirt.ErrNoNetwork):
			return Missing, nil
		case active == 0:
			return Inactive, err
		}
		return Active, err
	})
}

// isActive keeps the pool for the operations that follow.
func (h *Host) isActive(ctx context.Context, l *libvirt.Libvirt, kind Kind, name string) (int32, error) {
	if kind != StoragePool {
		return isActive(l, kind, name)
	}
	return withPool(ctx, h, l, name, func(l *libvirt.Libvirt, p libvirt.StoragePool) (int32, error) { return l.StoragePoolIsActive(p) })
}

func isActive(l *libvirt.Libvirt, kind Kind, name string) (int32, error) {
	if kind == Network {
		network, err := l.NetworkLookupByName(name)
		if err != nil {
			return 0, err
		}
		return l.NetworkIsActive(network)
	}
	pool, err := l.StoragePoolLookupByName(name)
	if err != nil {
		return 0, err
	}
	return l.StoragePoolIsActive(pool)
}

// explainInactive adds to the error of an operation that its pool or network is not active. libvirt has one code for all
// invalid operations.
func explainInactive(l *libvirt.Libvirt, err error, kind Kind, name string) error {
	if !isCode(err, libvirt.ErrOperationInvalid) {
		return err
	}
	if active, failed := isActive(l, kind, name); failed != nil || active != 0 {
		return err
	}
	return fmt.Errorf("%w. Start it: virsh %s-start %s", err, kind, ShellQuote(name))
}

// networkSource matches the network of an interface in XML.
var networkSource = regexp.MustCompile(`<source network=['"]([^'"]*)['"]`)

// explainNetworks is explainInactive for the networks in the XML of a device or domain.
func explainNetworks(l *libvirt.Libvirt, err error, xml string) error {
	for _, found := range networkSource.FindAllStringSubmatch(xml, -1) {
		err = explainInactive(l, err, Network, found[1])
	}
	return err
}
