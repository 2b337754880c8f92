package domainxml

import (
	"encoding/xml"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// InterfaceChange is an interface of a running domain that has to be changed, with the element for that.
type InterfaceChange struct{ Key, MAC, Element string }

// InterfaceDiff is what has to be done to the interfaces of a running domain.
type InterfaceDiff struct {
	// Unplug are those that want has not, or has as another device: of another model, address, kind or size.
	Unplug []InterfaceChange
	// Change are those that are to be on something else, or to have another link, and stay the same device.
	Change []InterfaceChange
	// Plug are the keys of those that it has not.
	Plug []string
}

// DiffInterfaces is what has to be done to the interfaces of a running domain to have them as want says. One that the domain
// boots from stays as it is.
func DiffInterfaces(live string, want Machine) (InterfaceDiff, error) {
	var todo InterfaceDiff
	all, err := liveInterfaces(live, want)
	if err != nil {
		return todo, err
	}
	for _, w := range all {
		intent, wanted := want.Interfaces[w.key]
		if w.is.BootOrder != 0 || wanted && w.is.runsAs(intent) {
			continue
		}
		to := &todo.Unplug
		if wanted && !w.is.isOtherDevice(intent) {
			to = &todo.Change
			applyWire(&w.element, w.is.asked(intent), intent)
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

// HasInterface tells whether a running domain has the interface of that key; want names those without a key of their own.
func HasInterface(live, key string, want Machine) (bool, error) {
	all, err := liveInterfaces(live, want)
	return slices.ContainsFunc(all, func(w liveInterface) bool { return w.key == key }), err
}

// PlugInterface is what to plug into a running domain to give it the interface of that key as its stored definition has
// it, at the same place if that is free.
func PlugInterface(stored, live, key string) (string, error) {
	s, err := Unmarshal(stored)
	if err != nil {
		return "", err
	}
	l, err := Unmarshal(live)
	if err != nil {
		return "", err
	}
	n := slices.Index(interfaceKeys(s.Devices.Interfaces, nil), key)
	if n < 0 {
		return "", fmt.Errorf("the stored definition of domain %s has no interface %s", s.Name, key)
	}
	i := s.Devices.Interfaces[n]
	if slices.ContainsFunc(addresses(l), func(a libvirtxml.DomainAddress) bool { return reflect.DeepEqual(&a, i.Address) }) {
		i.Address = nil
	}
	i.Boot = nil // a running domain has booted; and libvirt refuses an order that another device has
	return i.Marshal()
}

type liveInterface struct {
	key     string
	element libvirtxml.DomainInterface
	is      Interface
}

// liveInterfaces are those of a running domain, with the keys that of has for those without one. There libvirt shows one
// that is on a network as what it is on underneath, a bridge or a device, and names the network beside that.
func liveInterfaces(live string, of Machine) ([]liveInterface, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	return interfacesOf(d, live, of)
}

// interfacesOf is liveInterfaces for XML that is read already.
func interfacesOf(d *libvirtxml.Domain, live string, of Machine) ([]liveInterface, error) {
	if len(d.Devices.Interfaces) == 0 {
		return nil, nil
	}
	var shown struct {
		Interfaces []struct {
			Source struct {
				Network   string `xml:"network,attr"`
				PortGroup string `xml:"portgroup,attr"`
			} `xml:"source"`
		} `xml:"devices>interface"`
	}
	if err := xml.Unmarshal([]byte(live), &shown); err != nil {
		return nil, fmt.Errorf("read the domain's interfaces: %w", err)
	}
	known := map[string]string{}
	for key, i := range of.Interfaces {
		known[i.MAC] = key
	}
	var all []liveInterface
	for n, key := range interfaceKeys(d.Devices.Interfaces, known) {
		i := d.Devices.Interfaces[n]
		if source := shown.Interfaces[n].Source; source.Network != "" {
			i.Source = Interface{Network: source.Network, PortGroup: source.PortGroup}.source()
		}
		if isInterface(i) {
			all = append(all, liveInterface{key, i, parseInterface(i)})
		}
	}
	return all, nil
}

// runsAs is Has for an interface of a running domain: it has what its network adds, and an order to boot is over.
func (is Interface) runsAs(want Interface) bool {
	is.BootOrder = want.BootOrder
	return is.asked(want).Has(want)
}

// asked is an interface of a running domain without what its network may have added, as far as want does not ask for it.
func (is Interface) asked(want Interface) Interface {
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
	return is
}

// isOtherDevice tells whether a running domain's interface can't be made what want says. libvirt moves one from a network
// or a bridge to another one.
func (is Interface) isOtherDevice(want Interface) bool {
	is = is.asked(want)
	isFixed := func(i Interface) bool { return i.Network == "" && i.Bridge == "" }
	return is.Model != want.Model || want.MAC != "" && is.MAC != want.MAC || is.MTU != want.MTU || !is.VirtualPort.has(want.VirtualPort) ||
		!is.sameSource(want) && (isFixed(is) || isFixed(want))
}

// compareInterfaces adds to a stored machine what its running domain says otherwise of its interfaces: one that somebody
// attached by hand is there. One of virtclaim's is on nothing where only one of the two has it, or has it otherwise, because that
// failed or was interrupted: whatever is wanted, both are to become so. What the guest boots from is only changed at its next
// start, and so is the order.
func (m *Machine) compareInterfaces(live []liveInterface) {
	seen := map[string]Interface{}
	onNothing := func(i Interface) Interface { return Interface{Model: i.Model, MAC: i.MAC} }
	for key, stored := range m.Interfaces {
		if seen[key] = stored; m.Mark.Phase != "" {
			seen[key] = onNothing(stored)
		}
	}
	for _, w := range live {
		stored, ok := m.Interfaces[w.key]
		switch {
		case !ok && w.is.BootOrder == 0 && m.Mark.Phase != "" && hasInterfaceKey(w.element):
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

// pendingInterfaces are those that a running domain has otherwise than want says.
func pendingInterfaces(live []liveInterface, want Machine) (pending []string) {
	has := map[string]bool{}
	for _, w := range live {
		intent, wanted := want.Interfaces[w.key]
		has[w.key] = wanted && w.is.BootOrder == intent.BootOrder && w.is.runsAs(intent)
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

// Forgets are the interfaces of which want says less than was did of what a network may give to them by itself: a running domain
// keeps that, as nobody can tell which of the two it is.
func Forgets(was, want Machine) (pending []string) {
	for _, key := range slices.Sorted(maps.Keys(want.Interfaces)) {
		before, after := was.Interfaces[key], want.Interfaces[key]
		less := before.VLAN != nil && after.VLAN == nil || before.VirtualPort != nil && after.VirtualPort == nil || before.MTU != 0 && after.MTU == 0
		if after.Network != "" && before.Network == after.Network && less {
			pending = append(pending, "interface "+key)
		}
	}
	return pending
}
