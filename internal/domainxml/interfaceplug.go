package domainxml

import (
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// InterfaceChange is an interface of a running domain that has to be changed, with the element for the change.
type InterfaceChange struct{ Key, MAC, Element string }

// InterfaceDiff lists the changes of the interfaces of a running domain.
type InterfaceDiff struct {
	// Unplug are interfaces that want does not have, or that want has with another model, MAC address, MTU, virtual port or kind of
	// network.
	Unplug []InterfaceChange
	// Change are interfaces whose network, VLAN tags, bandwidth or link state change, while the device stays.
	Change []InterfaceChange
	// Plug are the keys of interfaces that the domain does not have.
	Plug []string
}

// DiffInterfaces returns the changes that a running domain's interfaces need to match want. An interface with a boot order is left as
// it is.
func (d *Domain) DiffInterfaces(want Machine) (InterfaceDiff, error) {
	var todo InterfaceDiff
	all := d.interfaces(want)
	for _, w := range all {
		intent, wanted := want.Interfaces[w.key]
		if w.is.BootOrder != 0 || wanted && w.is.runsAs(intent) {
			continue
		}
		to := &todo.Unplug
		if wanted && !w.is.isOtherDevice(intent) {
			to = &todo.Change
			applyWire(&w.element, w.is.configured(intent), intent)
		}
		text, err := w.element.Marshal()
		if err != nil {
			return todo, err
		}
		*to = append(*to, InterfaceChange{w.key, w.is.MAC, text})
	}
	for _, key := range slices.Sorted(maps.Keys(want.Interfaces)) {
		if !slices.ContainsFunc(all, func(w liveInterface) bool { return w.key == key }) {
			todo.Plug = append(todo.Plug, key)
		}
	}
	return todo, nil
}

// HasInterface reports whether a running domain has the interface with that key; keys of unmanaged interfaces are looked up in want.
func HasInterface(live, key string, want Machine) (bool, error) {
	d, err := Read(live)
	return err == nil && slices.ContainsFunc(d.interfaces(want), func(w liveInterface) bool { return w.key == key }), err
}

// PlugInterface returns the element to plug into a running domain for the interface with that key, as in the stored definition. Its
// address is kept if it is free.
func (d *Domain) PlugInterface(stored *Domain, key string) (string, error) {
	s, l := stored.xml, d.xml
	n := slices.Index(interfaceKeys(s.Devices.Interfaces, nil), key)
	if n < 0 {
		return "", fmt.Errorf("the stored definition of domain %s has no interface %s", s.Name, key)
	}
	i := s.Devices.Interfaces[n]
	if slices.ContainsFunc(addresses(l), func(a libvirtxml.DomainAddress) bool { return reflect.DeepEqual(&a, i.Address) }) {
		i.Address = nil
	}
	i.Boot = nil // a running domain has booted already, and libvirt refuses an order that another device has
	return i.Marshal()
}

type liveInterface struct {
	key     string
	element libvirtxml.DomainInterface
	is      Interface
}

// interfaces returns the interfaces of a running domain; keys of those without one are looked up in of.
func (d *Domain) interfaces(of Machine) (all []liveInterface) {
	known := map[string]string{}
	for key, i := range of.Interfaces {
		known[i.MAC] = key
	}
	networks := d.networks()
	for n, key := range interfaceKeys(d.xml.Devices.Interfaces, known) {
		i := d.xml.Devices.Interfaces[n]
		if source := networks[n]; source.Network != "" {
			i.Source = Interface{Network: source.Network, PortGroup: source.PortGroup}.source()
		}
		if isInterface(i) {
			all = append(all, liveInterface{key, i, parseInterface(i)})
		}
	}
	return all
}

type networkOf struct {
	Network   string `xml:"network,attr"`
	PortGroup string `xml:"portgroup,attr"`
}

// networks are the networks of the interfaces of a running domain: libvirt shows an interface on a network as the underlying bridge or
// device, with the network as an additional attribute, and libvirtxml reads only one of both.
func (d *Domain) networks() []networkOf {
	all := make([]networkOf, len(d.xml.Devices.Interfaces))
	if len(all) == 0 {
		return nil
	}
	var shown struct {
		Interfaces []struct {
			Source networkOf `xml:"source"`
		} `xml:"devices>interface"`
	}
	_ = xml.Unmarshal([]byte(d.text), &shown) // it was parsed before
	for n, i := range shown.Interfaces {
		all[n] = i.Source
	}
	return all
}

// runsAs is Has for an interface of a running domain: it ignores the boot order and the driver, which wait for the next start, and settings
// that the network has added.
func (is Interface) runsAs(want Interface) bool {
	is.BootOrder, is.Driver = want.BootOrder, want.Driver
	return is.configured(want).Has(want)
}

// configured returns an interface of a running domain without the settings that its network may have added and that want does not
// configure.
func (is Interface) configured(want Interface) Interface {
	if want.Network == "" {
		return is
	}
	if want.VLAN == nil {
		is.VLAN = nil
	}
	if want.VirtualPort == nil {
		is.VirtualPort = nil
	}
	if want.MTU == 0 {
		is.MTU = 0
	}
	if !want.isLimited() {
		is.Inbound, is.Outbound = Bandwidth{}, Bandwidth{}
	}
	return is
}

// isOtherDevice reports whether a running domain's interface can't be updated in place to match want. libvirt can only move an
// interface between networks and bridges.
func (is Interface) isOtherDevice(want Interface) bool {
	is = is.configured(want)
	isFixed := func(i Interface) bool { return i.Network == "" && i.Bridge == "" }
	return is.Model != want.Model || want.MAC != "" && is.MAC != want.MAC || is.MTU != want.MTU || !is.VirtualPort.has(want.VirtualPort) ||
		!is.sameSource(want) && (isFixed(is) || isFixed(want))
}

// compareInterfaces adds to a stored machine the differences of its running domain's interfaces. An interface attached outside of
// Terraform is listed. A managed interface that only the definition or only the running domain has, or that differs, is listed without
// a network: a change failed or was interrupted, and the next update applies it again. Interfaces with a boot order change only at the
// next start.
func (m *Machine) compareInterfaces(live []liveInterface) {
	seen := map[string]Interface{}
	onNothing := func(i Interface) Interface { return Interface{Model: i.Model, MAC: i.MAC} }
	for key, stored := range m.Interfaces {
		if seen[key] = stored; m.Metadata.Phase != "" {
			seen[key] = onNothing(stored)
		}
	}
	for _, w := range live {
		stored, ok := m.Interfaces[w.key]
		switch {
		case !ok && w.is.BootOrder == 0 && m.Metadata.Phase != "" && hasInterfaceKey(w.element):
			seen[w.key] = onNothing(w.is)
		case !ok && w.is.BootOrder == 0:
			seen[w.key] = w.is
		case ok && (w.is.BootOrder != 0 || w.is.runsAs(stored)):
			seen[w.key] = stored
		}
	}
	if m.Interfaces = seen; len(seen) == 0 {
		m.Interfaces = nil
	}
}

// pendingInterfaces returns the interfaces in which a running domain differs from want.
func pendingInterfaces(live []liveInterface, want Machine) (pending []string) {
	has := map[string]bool{}
	for _, w := range live {
		intent, wanted := want.Interfaces[w.key]
		has[w.key] = wanted && w.is.BootOrder == intent.BootOrder && w.is.Driver == intent.Driver && w.is.runsAs(intent)
		if !wanted {
			pending = append(pending, "interface "+w.key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want.Interfaces)) {
		if !has[key] {
			pending = append(pending, "interface "+key)
		}
	}
	return pending
}

// PendingRemovals returns the interfaces for which want removes a setting of was that a network can also provide: a running domain keeps
// such a setting, because its origin can't be determined.
func PendingRemovals(was, want Machine) (pending []string) {
	for _, key := range slices.Sorted(maps.Keys(want.Interfaces)) {
		before, after := was.Interfaces[key], want.Interfaces[key]
		less := before.VLAN != nil && after.VLAN == nil || before.VirtualPort != nil && after.VirtualPort == nil ||
			before.MTU != 0 && after.MTU == 0 || before.isLimited() && !after.isLimited()
		if after.Network != "" && before.Network == after.Network && less {
			pending = append(pending, "interface "+key)
		}
	}
	return pending
}
