package lab

import (
	"context"
	"fmt"
	"path/filepath"
)

// networkedHost is the name of the lab's host with networks.
const networkedHost = "host-e"

// Bridge is a bridge of host-e without an uplink.
const Bridge = "lab0"

// Networks are libvirt's networks of host-e, each with the first three bytes of the addresses that its DHCP server assigns.
var Networks = map[string]string{"red": "192.168.71", "blue": "192.168.72"}

// networkXML is an isolated network.
const networkXML = `<network><name>%[1]s</name><bridge name='%[1]s0' stp='off' delay='0'/>
	<ip address='%[2]s.1' netmask='255.255.255.0'><dhcp><range start='%[2]s.100' end='%[2]s.199'/></dhcp></ip></network>`

// NetworkedHost returns host-e, which the first call starts. Its networks are in a network namespace that is removed with it.
func (l *Lab) NetworkedHost(ctx context.Context) (*Host, error) {
	return l.networked.get(ctx, func(ctx context.Context) (*Host, error) {
		dir, err := l.serverFolder(networkedHost)
		if err != nil {
			return nil, err
		}
		h := newHost(dir, networkedHost, l.Guest)
		file := quote(filepath.Join(dir, "network"))
		h.within = "nsenter --net=" + file + " "
		network := fmt.Sprintf("touch %[1]s && unshare --net=%[1]s ip link set lo up && %[2]s ip link add %[3]s type bridge && %[2]s ip "+
			"link set %[3]s up",
			file, h.within, Bridge)
		h.prepare = func(ctx context.Context) error { return h.sandbox.run(ctx, network) }
		if err := h.run(ctx, l.Dir); err != nil {
			return h, err
		}
		return h, h.makeNetworks(ctx)
	})
}

func (h *Host) makeNetworks(ctx context.Context) error {
	l, disconnect, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	for name, addresses := range Networks {
		network, err := l.NetworkDefineXML(fmt.Sprintf(networkXML, name, addresses))
		if err == nil {
			err = l.NetworkCreate(network)
		}
		if err != nil {
			return fmt.Errorf("make the network %s of %s: %w", name, h.Name, err)
		}
	}
	return nil
}
