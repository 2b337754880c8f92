package domainxml

import (
	"errors"
	"fmt"
	"html"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Domain is the XML of a domain, stored or live, that was read once. Its methods change nothing.
type Domain struct {
	text     string
	xml      *libvirtxml.Domain
	metadata machineMetadata
	newer    error
}

// Read reads the XML of a domain, which libvirt or Build has written. One whose metadata a newer provider has written is newer.Err.
func Read(text string) (*Domain, error) {
	d, err := read(text)
	if err == nil {
		err = d.newer
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// read is Read that leaves out the metadata of a newer provider.
func read(text string) (*Domain, error) {
	x, err := Unmarshal(text)
	if err != nil {
		return nil, err
	}
	metadata, err := parseMetadata(x)
	if errors.Is(err, newer.Err) {
		return &Domain{text: text, xml: x, newer: err}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Domain{text: text, xml: x, metadata: metadata}, nil
}

// Newer is newer.Err for a domain whose metadata a newer provider has written: only its devices can be read.
func (d *Domain) Newer() error { return d.newer }

// MayReference reports whether the domain's metadata, of whatever version, have the name of an image. A journal's device is XML in XML.
func (d *Domain) MayReference(image volume.Image) bool {
	return d.xml.Metadata != nil && image.IsReferencedIn(html.UnescapeString(html.UnescapeString(d.xml.Metadata.XML)))
}

// Metadata is virtclaim's metadata of the domain, which is empty for a domain that virtclaim does not manage.
func (d *Domain) Metadata() Metadata { return d.metadata.Metadata }

// Machine is the part of the domain that virtclaim manages.
func (d *Domain) Machine() (Machine, error) { return parse(d.xml, d.metadata) }

// Name is the domain's.
func (d *Domain) Name() string { return d.xml.Name }

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
