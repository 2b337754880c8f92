package host

import (
	"context"
	"fmt"
	"regexp"

	"github.com/digitalocean/go-libvirt"
)

// Presence is whether a host has a pool or network, and whether that is active.
type Presence string

// What a pool or network may be. Only an active one can be used.
const (
	Missing  Presence = "missing"
	Inactive Presence = "inactive"
	Active   Presence = "active"
)

// CheckConnection is the error of a host that does not answer; a host that is connected is not asked.
func (h *Host) CheckConnection(ctx context.Context) error {
	return do(ctx, h, "connect", func(*libvirt.Libvirt) error { return nil })
}

// PoolPresence is that of a storage pool.
func (h *Host) PoolPresence(ctx context.Context, name string) (Presence, error) {
	return call(ctx, h, "look at storage pool "+name, func(l *libvirt.Libvirt) (Presence, error) {
		pool, err := l.StoragePoolLookupByName(name)
		var active int32
		if err == nil {
			active, err = l.StoragePoolIsActive(pool)
		}
		return presence(active, err, libvirt.ErrNoStoragePool)
	})
}

// NetworkPresence is that of one of libvirt's networks.
func (h *Host) NetworkPresence(ctx context.Context, name string) (Presence, error) {
	return call(ctx, h, "look at network "+name, func(l *libvirt.Libvirt) (Presence, error) {
		network, err := l.NetworkLookupByName(name)
		var active int32
		if err == nil {
			active, err = l.NetworkIsActive(network)
		}
		return presence(active, err, libvirt.ErrNoNetwork)
	})
}

func presence(active int32, err error, missing libvirt.ErrorNumber) (Presence, error) {
	switch {
	case isCode(err, missing):
		return Missing, nil
	case active == 0:
		return Inactive, err
	}
	return Active, err
}

// explainInactive adds to the error of an operation that its pool or network is not active. libvirt has one code for all invalid operations.
func explainInactive(err error, start, name string, isActive func() (int32, error)) error {
	if !isCode(err, libvirt.ErrOperationInvalid) {
		return err
	}
	if active, failed := isActive(); failed != nil || active != 0 {
		return err
	}
	return fmt.Errorf("%w. Start it: virsh %s %s", err, start, name)
}

// networkSource matches the network of an interface in XML.
var networkSource = regexp.MustCompile(`<source network=['"]([^'"]*)['"]`)

// explainNetworks is explainInactive for the networks in the XML of a device or domain.
func explainNetworks(l *libvirt.Libvirt, err error, xml string) error {
	for _, found := range networkSource.FindAllStringSubmatch(xml, -1) {
		err = explainInactive(err, "net-start", found[1], func() (int32, error) {
			network, failed := l.NetworkLookupByName(found[1])
			if failed != nil {
				return 0, failed
			}
			return l.NetworkIsActive(network)
		})
	}
	return err
}
