package domainxml

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

var interfaces = part{name: "interfaces", apply: applyInterfaces, parse: parseInterfaces}

// Interface is a network interface of a machine. Exactly one of Network, Bridge, Direct and User is set.
type Interface struct {
	// Network is a libvirt network, and PortGroup one of its port groups; empty for the network's default.
	Network, PortGroup string
	// Bridge is a bridge of the host.
	Bridge string
	// Direct is a macvtap device on a device of the host.
	Direct Direct
	// User is QEMU's user-mode network, which requires no network of the host.
	User bool
	// Model is the device that the guest sees, such as virtio.
	Model string
	// MAC is in lower case; empty for the address that the domain has.
	MAC string
	// BootOrder counts from 1; 0 is no boot order.
	BootOrder uint
	// Down is true if the link state is down.
	Down bool
	// MTU is 0 for the default of the network or bridge.
	MTU uint
	// VLAN are the tags on the network or bridge; nil for none.
	VLAN *VLAN
	// VirtualPort identifies the interface to a switch other than the kernel's bridge; nil for none.
	VirtualPort *VirtualPort
	Driver      InterfaceDriver
	// Inbound and Outbound limit what the guest receives and sends; an average of 0 is no limit.
	Inbound, Outbound Bandwidth
}

// InterfaceDriver are the options of a virtio device; what is empty or 0 is the default of libvirt or QEMU.
type InterfaceDriver struct {
	// Name is vhost or qemu: the host's kernel, or QEMU, moves the packets.
	Name string
	// Queues are pairs of queues, and RXQueueSize how many received packets one has.
	Queues, RXQueueSize uint
}

// Bandwidth is a limit: Average and Peak in KiB/s, Burst in KiB.
type Bandwidth struct{ Average, Peak, Burst uint }

// Direct is a macvtap device on a device of the host.
type Direct struct {
	Dev string
	// Mode is a macvtap mode of libvirt: bridge, vepa, private or passthrough.
	Mode string
}

// VLAN are VLAN tags. With several tags, or a trunk with one, the guest tags its packets itself.
type VLAN struct {
	Tags  []uint
	Trunk bool
}

// VirtualPort is libvirt's <virtualport>, with the parameters that its type supports.
type VirtualPort struct {
	Type, InterfaceID, ProfileID string
}

// WithMACs returns m with an address from generate for each interface that has none, neither in m nor in the existing machine.
func (m Machine) WithMACs(is Machine, generate func() string) Machine {
	taken := map[string]bool{}
	for _, of := range []Machine{m, is} {
		for _, i := range of.Interfaces {
			taken[i.MAC] = true
		}
	}
	m.Interfaces = maps.Clone(m.Interfaces)
	for key, i := range m.Interfaces {
		i.MAC = cmp.Or(i.MAC, is.Interfaces[key].MAC)
		for i.MAC == "" {
			if mac := generate(); !taken[mac] {
				i.MAC, taken[mac] = mac, true
			}
		}
		m.Interfaces[key] = i
	}
	return m
}

// interfaceAlias is the prefix of the user alias that contains an interface's key.
const interfaceAlias = "ua-net-"

// isInterface reports whether an Interface can represent this kind of interface.
func isInterface(i libvirtxml.DomainInterface) bool {
	return i.Source != nil && (i.Source.Network != nil || i.Source.Bridge != nil || i.Source.Direct != nil || i.Source.User != nil)
}

// hasInterfaceKey reports whether an interface has a key assigned by virtclaim.
func hasInterfaceKey(i libvirtxml.DomainInterface) bool {
	return i.Alias != nil && strings.HasPrefix(i.Alias.Name, interfaceAlias)
}

// interfaceKeys returns the keys of interfaces: virtclaim's own, else the key that known has for the MAC address, else the configured
// name of the device on the host, else a key by position. Generated names, such as libvirt's vnet0, are ignored, because only a
// running domain has them.
func interfaceKeys(all []libvirtxml.DomainInterface, known map[string]string) []string {
	keys, taken := make([]string, len(all)), map[string]bool{}
	for n, i := range all {
		switch {
		case hasInterfaceKey(i):
			keys[n] = strings.TrimPrefix(i.Alias.Name, interfaceAlias)
		case i.MAC != nil && known[strings.ToLower(i.MAC.Address)] != "":
			keys[n] = known[strings.ToLower(i.MAC.Address)]
		case i.Target != nil && !strings.HasPrefix(i.Target.Dev, "vnet") && !strings.HasPrefix(i.Target.Dev, "macvtap"):
			keys[n] = i.Target.Dev
		}
		taken[keys[n]] = true
	}
	for n := range keys {
		for number := n; keys[n] == ""; number++ {
			if key := fmt.Sprintf("net%d", number); !taken[key] {
				keys[n], taken[key] = key, true
			}
		}
	}
	return keys
}

// applyInterfaces replaces the interfaces of a domain with those of m. An interface that stays keeps its address, so that inserting
// one moves no other.
func applyInterfaces(d *libvirtxml.Domain, m Machine) {
	keys := interfaceKeys(d.Devices.Interfaces, nil)
	var kept []libvirtxml.DomainInterface
	have := map[string]bool{}
	for n, i := range d.Devices.Interfaces {
		if want, wanted := m.Interfaces[keys[n]]; isInterface(i) && wanted {
			applyInterface(&i, keys[n], want)
			have[keys[n]] = true
		} else if isInterface(i) {
			continue
		}
		kept = append(kept, i)
	}
	for _, key := range slices.Sorted(maps.Keys(m.Interfaces)) {
		if !have[key] {
			var i libvirtxml.DomainInterface
			applyInterface(&i, key, m.Interfaces[key])
			kept = append(kept, i)
		}
	}
	d.Devices.Interfaces = kept
}

// applyInterface updates one device to match want, and writes only what differs.
func applyInterface(i *libvirtxml.DomainInterface, key string, want Interface) {
	i.Alias = &libvirtxml.DomainAlias{Name: interfaceAlias + key}
	is := parseInterface(*i)
	if want.MAC != "" && is.MAC != want.MAC {
		i.MAC = &libvirtxml.DomainInterfaceMAC{Address: want.MAC}
	}
	if is.Model != want.Model {
		i.Model = &libvirtxml.DomainInterfaceModel{Type: want.Model}
	}
	applyWire(i, is, want)
	if is.MTU != want.MTU {
		i.MTU = nil
		if want.MTU != 0 {
			i.MTU = &libvirtxml.DomainInterfaceMTU{Size: want.MTU}
		}
	}
	if !is.VirtualPort.has(want.VirtualPort) {
		i.VirtualPort = want.VirtualPort.element()
	}
	if is.Driver != want.Driver {
		if i.Driver == nil {
			i.Driver = &libvirtxml.DomainInterfaceDriver{}
		}
		i.Driver.Name, i.Driver.Queues, i.Driver.RXQueueSize = want.Driver.Name, want.Driver.Queues, want.Driver.RXQueueSize
	}
	if is.BootOrder != want.BootOrder {
		i.Boot = nil
		if want.BootOrder != 0 {
			i.Boot = &libvirtxml.DomainDeviceBoot{Order: want.BootOrder}
		}
	}
}

// applyWire writes the settings that can also be changed in a running domain: network, VLAN tags, bandwidth and link state.
func applyWire(i *libvirtxml.DomainInterface, is, want Interface) {
	if i.Source == nil || !is.sameSource(want) {
		i.Source = want.source()
	}
	if !is.VLAN.same(want.VLAN) {
		i.VLan = want.VLAN.element()
	}
	if is.Inbound != want.Inbound || is.Outbound != want.Outbound {
		i.Bandwidth = bandwidthElement(i.Bandwidth, want)
	}
	if is.Down != want.Down {
		i.Link = &libvirtxml.DomainInterfaceLink{State: map[bool]string{true: "down", false: "up"}[want.Down]}
	}
}

func (is Interface) sameSource(want Interface) bool {
	return is.Network == want.Network && is.PortGroup == want.PortGroup && is.Bridge == want.Bridge && is.Direct == want.Direct &&
		is.User == want.User
}

func (is Interface) source() *libvirtxml.DomainInterfaceSource {
	switch {
	case is.Network != "":
		return &libvirtxml.DomainInterfaceSource{Network: &libvirtxml.DomainInterfaceSourceNetwork{
			Network:   is.Network,
			PortGroup: is.PortGroup,
		}}
	case is.Bridge != "":
		return &libvirtxml.DomainInterfaceSource{Bridge: &libvirtxml.DomainInterfaceSourceBridge{Bridge: is.Bridge}}
	case is.Direct != Direct{}:
		return &libvirtxml.DomainInterfaceSource{Direct: &libvirtxml.DomainInterfaceSourceDirect{Dev: is.Direct.Dev, Mode: is.Direct.Mode}}
	}
	return &libvirtxml.DomainInterfaceSource{User: &libvirtxml.DomainInterfaceSourceUser{}}
}

// same compares VLANs. Several tags are always a trunk, as in libvirt.
func (v *VLAN) same(other *VLAN) bool {
	if v == nil || other == nil {
		return v == other
	}
	return slices.Equal(v.Tags, other.Tags) && (len(v.Tags) > 1 || v.Trunk == other.Trunk)
}

func (v *VLAN) element() *libvirtxml.DomainInterfaceVLan {
	if v == nil {
		return nil
	}
	e := &libvirtxml.DomainInterfaceVLan{}
	if v.Trunk {
		e.Trunk = "yes"
	}
	for _, tag := range v.Tags {
		e.Tags = append(e.Tags, libvirtxml.DomainInterfaceVLanTag{ID: tag})
	}
	return e
}

// has reports whether the port matches want. libvirt generates a missing interface id, so one that want leaves out is ignored.
func (p *VirtualPort) has(want *VirtualPort) bool {
	if p == nil || want == nil {
		return p == want
	}
	return p.Type == want.Type && p.ProfileID == want.ProfileID &&
		(want.InterfaceID == "" || strings.EqualFold(p.InterfaceID, want.InterfaceID))
}

func (p *VirtualPort) element() *libvirtxml.DomainInterfaceVirtualPort {
	if p == nil {
		return nil
	}
	var params libvirtxml.DomainInterfaceVirtualPortParams
	switch p.Type {
	case "802.1Qbg":
		params.VEPA8021QBG = &libvirtxml.DomainInterfaceVirtualPortParamsVEPA8021QBG{}
	case "802.1Qbh":
		params.VNTag8011QBH = &libvirtxml.DomainInterfaceVirtualPortParamsVNTag8021QBH{ProfileID: p.ProfileID}
	case "midonet":
		params.MidoNet = &libvirtxml.DomainInterfaceVirtualPortParamsMidoNet{InterfaceID: p.InterfaceID}
	case "openvswitch":
		params.OpenVSwitch = &libvirtxml.DomainInterfaceVirtualPortParamsOpenVSwitch{InterfaceID: p.InterfaceID, ProfileID: p.ProfileID}
	default:
		params.Any = &libvirtxml.DomainInterfaceVirtualPortParamsAny{InterfaceID: p.InterfaceID, ProfileID: p.ProfileID}
	}
	return &libvirtxml.DomainInterfaceVirtualPort{Params: &params}
}

func parseInterfaces(d *libvirtxml.Domain, _ machineMetadata, m *Machine) error {
	keys := interfaceKeys(d.Devices.Interfaces, nil)
	for n, i := range d.Devices.Interfaces {
		if !isInterface(i) {
			continue
		}
		if m.Interfaces == nil {
			m.Interfaces = map[string]Interface{}
		}
		m.Interfaces[keys[n]] = parseInterface(i)
	}
	return nil
}

func parseInterface(i libvirtxml.DomainInterface) Interface {
	is := Interface{Down: i.Link != nil && i.Link.State == "down", VirtualPort: parseVirtualPort(i.VirtualPort)}
	if s := i.Source; s != nil {
		is.User = s.User != nil
		if s.Network != nil {
			is.Network, is.PortGroup = s.Network.Network, s.Network.PortGroup
		}
		if s.Bridge != nil {
			is.Bridge = s.Bridge.Bridge
		}
		if s.Direct != nil {
			is.Direct = Direct{s.Direct.Dev, cmp.Or(s.Direct.Mode, "vepa")}
		}
	}
	if i.MAC != nil {
		is.MAC = strings.ToLower(i.MAC.Address)
	}
	if i.Model != nil {
		is.Model = i.Model.Type
	}
	if i.Boot != nil {
		is.BootOrder = i.Boot.Order
	}
	if i.Driver != nil {
		is.Driver = InterfaceDriver{i.Driver.Name, i.Driver.Queues, i.Driver.RXQueueSize}
	}
	if i.Bandwidth != nil {
		is.Inbound, is.Outbound = parseBandwidth(i.Bandwidth.Inbound), parseBandwidth(i.Bandwidth.Outbound)
	}
	if i.MTU != nil {
		is.MTU = i.MTU.Size
	}
	if i.VLan != nil {
		is.VLAN = &VLAN{Trunk: i.VLan.Trunk == "yes"}
		for _, tag := range i.VLan.Tags {
			is.VLAN.Tags = append(is.VLAN.Tags, tag.ID)
		}
	}
	return is
}

func parseVirtualPort(e *libvirtxml.DomainInterfaceVirtualPort) *VirtualPort {
	if e == nil || e.Params == nil {
		return nil
	}
	switch p := e.Params; {
	case p.VEPA8021QBG != nil:
		return &VirtualPort{Type: "802.1Qbg"}
	case p.VNTag8011QBH != nil:
		return &VirtualPort{Type: "802.1Qbh", ProfileID: p.VNTag8011QBH.ProfileID}
	case p.MidoNet != nil:
		return &VirtualPort{Type: "midonet", InterfaceID: p.MidoNet.InterfaceID}
	case p.OpenVSwitch != nil:
		return &VirtualPort{Type: "openvswitch", InterfaceID: p.OpenVSwitch.InterfaceID, ProfileID: p.OpenVSwitch.ProfileID}
	case p.Any != nil:
		return &VirtualPort{InterfaceID: p.Any.InterfaceID, ProfileID: p.Any.ProfileID}
	}
	return nil
}

// Has reports whether the interface matches want. Values that want leaves to libvirt may be anything.
func (is Interface) Has(want Interface) bool {
	if !is.VLAN.same(want.VLAN) || !is.VirtualPort.has(want.VirtualPort) {
		return false
	}
	is.VLAN, is.VirtualPort, want.MAC = want.VLAN, want.VirtualPort, cmp.Or(want.MAC, is.MAC)
	return reflect.DeepEqual(is, want)
}
