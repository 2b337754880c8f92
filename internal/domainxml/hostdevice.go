package domainxml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// HostDevice is a device of the host that a domain has to itself.
type HostDevice struct {
	// Kind is pci, usb or mdev.
	Kind string
	// Address is as in host.NodeDevice; empty for a USB device that only its model names.
	Address string
	// Model is a USB device's vendor and product, such as 046d:c31c, or how QEMU opens a mediated device, such as vfio-pci.
	Model string
	// Optional is true for a USB device without which the domain starts, too.
	Optional bool
}

// Is reports whether one of two devices may be the other: a USB device without an address is any of its model.
func (d HostDevice) Is(other HostDevice) bool {
	if d.Address == "" || other.Address == "" {
		return d.Kind == other.Kind && d.Model == other.Model
	}
	return d.Kind == other.Kind && d.Address == other.Address
}

// String is what kind of device it is, with what names it.
func (d HostDevice) String() string {
	kind := map[string]string{"pci": "PCI device ", "usb": "USB device ", "mdev": "mediated device "}[d.Kind]
	if d.Address == "" {
		return kind + d.Model
	}
	return kind + d.Address
}

// Element is the device for devices_xml. A USB device is named by its address if it has one.
func (d HostDevice) Element() string {
	var model, source string
	switch {
	case d.Kind == "pci":
		var a [4]uint
		_, _ = fmt.Sscanf(d.Address, "%x:%x:%x.%x", &a[0], &a[1], &a[2], &a[3]) // it is one
		model = " managed='yes'"
		source = fmt.Sprintf("<address domain='0x%04x' bus='0x%02x' slot='0x%02x' function='0x%x'/>", a[0], a[1], a[2], a[3])
	case d.Kind == "mdev":
		model, source = fmt.Sprintf(" model='%s'", d.Model), fmt.Sprintf("<address uuid='%s'/>", d.Address)
	case d.Address != "":
		bus, device, _ := strings.Cut(d.Address, ".")
		source = fmt.Sprintf("<address bus='%s' device='%s'/>", bus, device)
	default:
		vendor, product, _ := strings.Cut(d.Model, ":")
		source = fmt.Sprintf("<vendor id='0x%s'/><product id='0x%s'/>", vendor, product)
	}
	return fmt.Sprintf("<hostdev mode='subsystem' type='%s'%s><source>%s</source></hostdev>", d.Kind, model, source)
}

// HostDevicesIn lists the devices of the host that a text of devices_xml names.
func HostDevicesIn(text string) ([]HostDevice, error) {
	list, err := parseDevices(text)
	return hostDevices(list), err
}

// HostDevicesOf lists those that a domain has, by its XML, also as interfaces.
func HostDevicesOf(domain string) ([]HostDevice, error) {
	x, err := Unmarshal(domain)
	if err != nil {
		return nil, err
	}
	return hostDevices(*x.Devices), nil
}

func hostDevices(list libvirtxml.DomainDeviceList) (all []HostDevice) {
	for _, h := range list.Hostdevs {
		switch {
		case h.SubsysPCI != nil:
			all = append(all, pciDevice(h.SubsysPCI.Source))
		case h.SubsysUSB != nil:
			all = append(all, usbDevice(h.SubsysUSB.Source))
		case h.SubsysMDev != nil && h.SubsysMDev.Source != nil && h.SubsysMDev.Source.Address != nil:
			id := strings.ToLower(h.SubsysMDev.Source.Address.UUID)
			all = append(all, HostDevice{Kind: "mdev", Address: id, Model: h.SubsysMDev.Model})
		}
	}
	for _, i := range list.Interfaces {
		if i.Source != nil && i.Source.Hostdev != nil {
			all = append(all, pciDevice(i.Source.Hostdev.PCI), usbDevice(i.Source.Hostdev.USB))
		}
	}
	return slices.DeleteFunc(all, func(d HostDevice) bool { return d.Address+d.Model == "" })
}

func pciDevice(s *libvirtxml.DomainHostdevSubsysPCISource) HostDevice {
	if s == nil || s.Address == nil {
		return HostDevice{}
	}
	a := s.Address
	at := fmt.Sprintf("%04x:%02x:%02x.%x", number(a.Domain), number(a.Bus), number(a.Slot), number(a.Function))
	return HostDevice{Kind: "pci", Address: at}
}

func usbDevice(s *libvirtxml.DomainHostdevSubsysUSBSource) (d HostDevice) {
	if s == nil {
		return d
	}
	d = HostDevice{Kind: "usb", Optional: s.StartUpPolicy == "optional"}
	if s.Vendor != nil && s.Product != nil {
		vendor, failed := strconv.ParseUint(s.Vendor.ID, 0, 16)
		product, err := strconv.ParseUint(s.Product.ID, 0, 16)
		if failed == nil && err == nil {
			d.Model = fmt.Sprintf("%04x:%04x", vendor, product)
		}
	}
	if a := s.Address; a != nil && number(a.Device) != 0 {
		d.Address = fmt.Sprintf("%d.%d", number(a.Bus), number(a.Device))
	}
	return d
}

// number is 0 for what is not given, as for libvirt.
func number(n *uint) uint {
	if n == nil {
		return 0
	}
	return *n
}
