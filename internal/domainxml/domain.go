package domainxml

import (
	"fmt"

	"libvirt.org/go/libvirtxml"
)

// Domain is the XML of a domain, stored or live, that was read once. Its methods change nothing.
type Domain struct {
	text     string
	xml      *libvirtxml.Domain
	metadata machineMetadata
}

// Read reads the XML of a domain, which libvirt or Build has written.
func Read(text string) (*Domain, error) {
	x, err := Unmarshal(text)
	if err != nil {
		return nil, err
	}
	metadata, err := parseMetadata(x)
	if err != nil {
		return nil, err
	}
	return &Domain{text, x, metadata}, nil
}

// Metadata is virtclaim's metadata of the domain, which is empty for a domain that virtclaim does not manage.
func (d *Domain) Metadata() Metadata { return d.metadata.Metadata }

// Machine is the part of the domain that virtclaim manages.
func (d *Domain) Machine() (Machine, error) { return parse(d.xml, d.metadata) }

// Type is the machine type, with the alias resolved by libvirt.
func (d *Domain) Type() string { return typeOf(d.xml) }

// Unmarshal reads libvirt's domain XML.
func Unmarshal(text string) (*libvirtxml.Domain, error) {
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("read the domain's XML: %w", err)
	}
	if d.Devices == nil {
		d.Devices = &libvirtxml.DomainDeviceList{}
	}
	if d.OS == nil {
		d.OS = &libvirtxml.DomainOS{}
	}
	return d, nil
}
