package domainxml

import (
	"encoding/xml"
	"errors"
	"fmt"
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
	free := freePorts(d)
	free = free[max(0, len(free)-int(n)):]
	d.Devices.Controllers = slices.DeleteFunc(d.Devices.Controllers, func(c libvirtxml.DomainController) bool {
		return isPort(c) && slices.Contains(free, *c.Index)
	})
}

// freePorts returns the indexes of the ports that no device has its address on.
func freePorts(d *libvirtxml.Domain) (free []uint) {
	taken := takenBuses(d)
	for _, c := range d.Devices.Controllers {
		if isPort(c) && !taken[*c.Index] {
			free = append(free, *c.Index)
		}
	}
	return free
}

// ErrNoPort is the error of more devices than a running machine has ports for. At its next start it has them.
var ErrNoPort = errors.New("too few free PCI Express ports")

// onPort has the buses of disks, and the models of interfaces, of which each device takes a port.
var onPort = map[string]int{"virtio": 1, "e1000e": 1}

// CheckPorts returns ErrNoPort if the disks and interfaces of want can't be plugged into a running q35.
func (d *Domain) CheckPorts(want Machine) error {
	free, more := len(freePorts(d.xml)), 0
	for _, disk := range want.Disks {
		more += onPort[disk.Bus]
	}
	for _, i := range want.Interfaces {
		more += onPort[i.Model]
	}
	for _, disk := range d.xml.Devices.Disks {
		more -= onPort[parseDisk(disk, diskMetadata{}).Bus]
	}
	for _, i := range d.xml.Devices.Interfaces {
		more -= onPort[parseInterface(i).Model]
	}
	if d.xml.OS.Type == nil || !IsQ35(d.xml.OS.Type.Machine) || more <= free {
		return nil
	}
	return fmt.Errorf("%w: the running machine has %d, and gets %d more devices that take one each (virtio disks and interfaces). "+
		"Nothing is changed. Have the machine restarted (allow_restart) or off (running = false), with larger "+
		"hotplug_ports for free ones. Or give the disks bus = \"scsi\", where many share a port", ErrNoPort, free, more)
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
