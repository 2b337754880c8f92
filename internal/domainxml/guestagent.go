package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// agentPort is the name of the virtio port that QEMU's guest agent opens.
const agentPort = "org.qemu.guest_agent.0"

var guestAgent = part{
	name: "guest_agent", apply: applyGuestAgent, parse: parseGuestAgent,
	same: func(live, want Machine) bool { return live.GuestAgent == want.GuestAgent },
}

func isAgentPort(c libvirtxml.DomainChannel) bool {
	return c.Target != nil && c.Target.VirtIO != nil && c.Target.VirtIO.Name == agentPort
}

// HasAgent reports whether there is a channel for the guest agent.
func (d *Domain) HasAgent() bool {
	return d.xml.Devices != nil && slices.ContainsFunc(d.xml.Devices.Channels, isAgentPort)
}

func applyGuestAgent(d *libvirtxml.Domain, m Machine) {
	has := slices.ContainsFunc(d.Devices.Channels, isAgentPort)
	switch {
	case has && !m.GuestAgent:
		d.Devices.Channels = slices.DeleteFunc(d.Devices.Channels, isAgentPort)
	case !has && m.GuestAgent:
		d.Devices.Channels = append(d.Devices.Channels, libvirtxml.DomainChannel{
			Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{}},
			Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: agentPort}},
		})
	}
}

func parseGuestAgent(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	for _, c := range d.Devices.Channels {
		if isAgentPort(c) {
			m.GuestAgent, m.AgentConnected = true, c.Target.VirtIO.State == "connected"
		}
	}
	return nil
}
