package domainxml

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// sparePorts is the default number of PCI Express root ports of a q35 machine. libvirt adds one spare port and never replenishes it,
// and devices can only be plugged into a free port.
const sparePorts = 12

const rootPort = "pcie-root-port"

var hotplugPorts = part{
	name: "machine.hotplug_ports", apply: applyPorts, parse: parsePorts,
	same: func(live, want Machine) bool {
		return want.HotplugPorts == nil || live.hotplugPorts() >= *want.HotplugPorts
	},
}

func (m Machine) hotplugPorts() uint {
	if m.HotplugPorts == nil {
		return sparePorts
	}
	return *m.HotplugPorts
}

// applyPorts adds missing ports. When the configured number decreases, only free ports are removed.
func applyPorts(d *libvirtxml.Domain, m Machine) {
	if m.HotplugPorts == nil || d.OS.Type == nil || !IsQ35(d.OS.Type.Machine) {
		return
	}
	want, has := *m.HotplugPorts, countPorts(d)
	if has < want {
		addPorts(d, want-has)
		return
	}
	metadata, _ := parseMetadata(d)
	if before := (Machine{HotplugPorts: metadata.HotplugPorts}).hotplugPorts(); before > want {
		removePorts(d, min(before, has)-want)
	}
}

func isPort(c libvirtxml.DomainController) bool {
	return c.Type == "pci" && c.Model == rootPort && c.Index != nil
}

func countPorts(d *libvirtxml.Domain) (n uint) {
	for _, c := range d.Devices.Controllers {
		if isPort(c) {
			n++
		}
	}
	return n
}

func addPorts(d *libvirtxml.Domain, n uint) {
	next := uint(0)
	for _, c := range d.Devices.Controllers {
		if c.Type == "pci" && c.Index != nil {
			next = max(next, *c.Index+1)
		}
	}
	for index := next; index < next+n; index++ {
		d.Devices.Controllers = append(d.Devices.Controllers, libvirtxml.DomainController{Type: "pci", Index: &index, Model: rootPort})
	}
}

// removePorts removes the last n free ports, or as many as are free.
func removePorts(d *libvirtxml.Domain, n uint) {
	taken := takenBuses(d)
	for i := len(d.Devices.Controllers) - 1; i >= 0 && n > 0; i-- {
		if c := d.Devices.Controllers[i]; isPort(c) && !taken[*c.Index] {
			d.Devices.Controllers = slices.Delete(d.Devices.Controllers, i, i+1)
			n--
		}
	}
}

// takenBuses returns the buses on which any device has its address.
func takenBuses(d *libvirtxml.Domain) map[uint]bool {
	taken := map[uint]bool{}
	text, _ := d.Marshal() // it was unmarshalled before, so marshalling can't fail
	for tokens := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := tokens.Token()
		if err != nil {
			return taken
		}
		element, ok := token.(xml.StartElement)
		if !ok || element.Name.Local != "address" {
			continue
		}
		for _, a := range element.Attr {
			if bus, err := strconv.ParseUint(a.Value, 0, 0); err == nil && a.Name.Local == "bus" {
				taken[uint(bus)] = true
			}
		}
	}
}

func parsePorts(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if metadata.HotplugPorts == nil {
		return nil
	}
	ports := min(*metadata.HotplugPorts, countPorts(d))
	m.HotplugPorts = &ports
	return nil
}
