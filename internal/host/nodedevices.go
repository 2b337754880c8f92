package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"
)

// ErrNoNodeDevices is the error of a host whose libvirt does not ask udev.
var ErrNoNodeDevices = errors.New("libvirt does not know the devices of this host")

// NodeDevice is a device of a host that a guest can have to itself.
type NodeDevice struct {
	// Kind is pci, usb or mdev.
	Kind string
	// Address is that of a PCI device, such as 0000:01:00.0, bus and number of a USB device, such as 1.4, or the UUID of a mediated device.
	Address string
	// Port is where a USB device is plugged in, such as 1-1.2.
	Port string
	// Vendor and Product are hexadecimal, such as 8086. Their names are empty if the host has no list of them.
	Vendor, VendorName, Product, ProductName string
	// Class is the hexadecimal class of a PCI device, Driver is the one that the host uses now; both may be empty.
	Class, Driver string
	// Group is the IOMMU group; nil without one.
	Group *int64
	// Type is that of a mediated device, Parent is libvirt's name of the device that it is part of.
	Type, Parent string
}

// NodeDevices lists the devices of the host, or is ErrNoNodeDevices.
func (h *Host) NodeDevices(ctx context.Context) ([]NodeDevice, error) {
	return h.devices.get(ctx, func(ctx context.Context) ([]NodeDevice, error) {
		return call(ctx, h, "list the devices of the host", listNodeDevices)
	})
}

func listNodeDevices(l *libvirt.Libvirt) ([]NodeDevice, error) {
	const kinds = libvirt.ConnectListNodeDevicesCapPciDev | libvirt.ConnectListNodeDevicesCapUsbDev | libvirt.ConnectListNodeDevicesCapMdev
	all, _, err := l.ConnectListAllNodeDevices(1, uint32(kinds))
	if isCode(err, libvirt.ErrNoSupport) {
		return nil, ErrNoNodeDevices
	}
	if err != nil {
		return nil, err
	}
	found, err := pipelined(all, func(d libvirt.NodeDevice) (NodeDevice, error) {
		text, err := l.NodeDeviceGetXMLDesc(d.Name, 0)
		if isCode(err, libvirt.ErrNoNodeDevice) {
			return NodeDevice{}, nil // it was unplugged meanwhile
		}
		if err != nil {
			return NodeDevice{}, err
		}
		return nodeDevice(text)
	})
	return slices.DeleteFunc(found, func(d NodeDevice) bool { return d.Kind == "" }), err
}

// nodeDevice reads libvirt's description of a device. Its kind is empty for a mediated device that is only defined, and has no path then.
func nodeDevice(text string) (is NodeDevice, err error) {
	var d libvirtxml.NodeDevice
	if err := d.Unmarshal(text); err != nil {
		return is, fmt.Errorf("read libvirt's description of a device: %w", err)
	}
	is.Parent = d.Parent
	if d.Driver != nil {
		is.Driver = d.Driver.Name
	}
	var group *libvirtxml.NodeDeviceIOMMUGroup
	switch c := d.Capability; {
	case c.PCI != nil:
		is.Kind, is.Class, group = "pci", strings.TrimPrefix(c.PCI.Class, "0x"), c.PCI.IOMMUGroup
		is.Address = fmt.Sprintf("%04x:%02x:%02x.%x", value(c.PCI.Domain), value(c.PCI.Bus), value(c.PCI.Slot), value(c.PCI.Function))
		is.identify(c.PCI.Vendor, c.PCI.Product)
	case c.USBDevice != nil:
		is.Kind, is.Port, is.Address = "usb", path.Base(d.Path), fmt.Sprintf("%d.%d", c.USBDevice.Bus, c.USBDevice.Device)
		is.identify(c.USBDevice.Vendor, c.USBDevice.Product)
	case c.MDev != nil && d.Path != "":
		is.Kind, is.Address, group = "mdev", strings.ToLower(c.MDev.UUID), c.MDev.IOMMUGroup
		if is.Address == "" { // before libvirt 7.3 only the path has it
			is.Address = path.Base(d.Path)
		}
		if c.MDev.Type != nil {
			is.Type = c.MDev.Type.ID
		}
	}
	if group != nil {
		number := int64(group.Number)
		is.Group = &number
	}
	return is, nil
}

// Model is the vendor and the product.
func (d NodeDevice) Model() string { return d.Vendor + ":" + d.Product }

func (d *NodeDevice) identify(vendor, product libvirtxml.NodeDeviceIDName) {
	d.Vendor, d.VendorName = strings.TrimPrefix(vendor.ID, "0x"), vendor.Name
	d.Product, d.ProductName = strings.TrimPrefix(product.ID, "0x"), product.Name
}

// value is 0 for what is not given.
func value(n *uint) uint {
	if n == nil {
		return 0
	}
	return *n
}
