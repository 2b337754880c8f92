// Package domainxml turns a machine into libvirt's domain XML and back. It is pure: the same machine gives the same
// XML, and nothing is asked of a host. The source of every rule is libvirt's domain format
// (https://libvirt.org/formatdomain.html) unless a comment says otherwise.
package domainxml

import (
	"encoding/xml"
	"fmt"
	"maps"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Machine is what virtclaim knows of a libvirt domain. Whatever else a domain has stays as it is when a Machine is
// applied to it.
type Machine struct {
	Name string
	// UUID is empty before libvirt has given the domain one.
	UUID string
	// VCPUs are the processors that it has, MaxVCPUs those that it can be given while it runs; 0 is as many as VCPUs.
	VCPUs, MaxVCPUs uint
	CPU             CPU
	// Memory is what the guest has, MaxMemory what it can be given while it runs; 0 is as much as Memory. They are in KiB,
	// libvirt's own unit.
	Memory, MaxMemory uint
	// Title and Description are for people.
	Title, Description string
	// State is libvirt's word for how a domain is, and Autostart tells whether its host starts it. No XML has them: the host
	// is asked.
	State     string
	Autostart bool
	// Drift is what somebody has made of a running machine alone; the rest is as stored.
	Drift Drift
	// Type is the machine type, an alias such as q35 or a full name; empty lets libvirt choose.
	Type string
	// Arch is the guest's architecture; empty lets libvirt choose.
	Arch string
	// DomainType is kvm, or qemu for emulation.
	DomainType string
	// HotplugPorts is how many PCI Express ports a q35 has for devices; nil where nobody said so.
	HotplugPorts *uint
	// Boot is the kernel that is booted directly; nil boots from the disks.
	Boot *Boot
	// Disks are keyed by the name that the user gave them.
	Disks map[string]Disk
	// Interfaces are keyed by the name that the user gave them.
	Interfaces map[string]Interface
	// Serial is the first serial port; nil when there is none.
	Serial *Serial
	// Firmware is nil when nobody has chosen one.
	Firmware *Firmware
	// TPM is nil when there is none that is emulated.
	TPM      *TPM
	Graphics *Graphics
	Video    *Video
	RNG      *RNG
	Watchdog *Watchdog
	Console  *Console
	// Filesystems are keyed by the name that the user gave them.
	Filesystems map[string]Filesystem
	// DevicesXML is libvirt's XML of further devices, as the user gave it.
	DevicesXML string
	// GuestAgent tells that there is a port for QEMU's agent in the guest.
	GuestAgent bool
	// AgentPort tells of a running machine that it was started with that port, and AgentConnected that its guest has opened it.
	AgentPort, AgentConnected bool
	// Addresses are the IP addresses of a running machine's interfaces, by their key. They are in no XML.
	Addresses map[string][]string
	// Endpoints are where a running machine is to be seen.
	Endpoints Endpoints
	// Pending is what a running machine goes on without until its next start: see Pending.
	Pending []string
	// External are disks whose chain somebody else has changed, by their keys.
	External map[string]External
	Mark     Mark
}

// HardwareMatches tells whether is has the emulated hardware that m asks for, as far as m asks.
func (m Machine) HardwareMatches(is Machine) bool {
	return (m.Type == "" || SameMachineType(m.Type, is.Type)) && (m.Arch == "" || m.Arch == is.Arch) && m.DomainType == is.DomainType
}

// WithoutTentative is m without what is tentative: such disks have no volume and are unsettled, so that an update asks again.
func (m Machine) WithoutTentative() Machine {
	m.Disks = maps.Clone(m.Disks)
	for key, d := range m.Disks {
		if d.Tentative {
			d.Volume, d.Tentative, d.Unsettled = volume.Volume{}, false, true
			m.Disks[key] = d
		}
	}
	return m
}

// Boot is a direct kernel boot. The paths are on the host.
type Boot struct {
	Kernel, Initrd, Cmdline string
}

// Disk is one disk of a machine.
type Disk struct {
	// Volume has no image where a drive is empty.
	Volume volume.Volume
	// Device is how the guest sees it: Fixed, LUN, CDROM or Floppy. It is built without one as Fixed.
	Device string
	// Bus is virtio, scsi, sata, usb, ide or, of a floppy drive, fdc.
	Bus string
	// Target is the name that was asked for in libvirt, such as vdb; empty leaves it open.
	Target string
	// ReadOnly asks for a device that can only be read from, whatever the volume allows.
	ReadOnly bool
	Tuning
	// BootOrder counts from 1; 0 means that the disk is not booted from by order.
	BootOrder uint
	// Ephemeral discards what a guest wrote when it stops (libvirt's <transient/>; the top image must be a file).
	Ephemeral bool
	// Tentative notes in the stored definition that nobody has found out yet whether the machine may use the volume: that
	// it is there is only to be seen by others.
	Tentative bool
	// Unsettled tells that the stored definition and the running domain have different volumes, or that it is not known yet
	// whether the machine may use its. The disk has no volume then, and that is not what an empty drive is: whatever is wanted,
	// it is to become so in both.
	Unsettled bool
}

// WithTentative is m with the disks of those keys as tentative.
func (m Machine) WithTentative(keys []string) Machine {
	m.Disks = maps.Clone(m.Disks)
	for _, key := range keys {
		d := m.Disks[key]
		d.Tentative = true
		m.Disks[key] = d
	}
	return m
}

// Serial is a serial port whose output may be kept.
type Serial struct {
	// LogFile is an absolute path on the host; empty keeps no log.
	LogFile string
}

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

// Build gives the XML of a domain that does not exist yet.
func Build(m Machine) (string, error) {
	d := skeleton(m)
	return apply(d, m)
}

// Update gives the XML of an existing domain (its stored definition) after m.
func Update(stored string, m Machine) (string, error) {
	d, err := Unmarshal(stored)
	if err != nil {
		return "", err
	}
	return keepUnknown(d, stored, func() (string, error) { return apply(d, m) })
}

// apply writes m into d and leaves alone what already says the same, so that libvirt keeps addresses and names.
func apply(d *libvirtxml.Domain, m Machine) (string, error) {
	kept := keeps(d)
	for _, p := range parts {
		p.apply(d, m)
	}
	if err := applyMark(d, m, kept); err != nil {
		return "", err
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the domain's XML: %w", err)
	}
	return string(text), nil
}

// Parse reads a machine out of a domain's XML, from libvirt or from Build.
func Parse(text string) (Machine, error) {
	d, err := Unmarshal(text)
	if err != nil {
		return Machine{}, err
	}
	m, _, err := parse(d)
	return m, err
}

// parse is Parse for XML that is read already, which is most of its cost. It gives the mark, too.
func parse(d *libvirtxml.Domain) (Machine, machineMark, error) {
	m := Machine{Name: d.Name, UUID: d.UUID, DomainType: d.Type}
	if d.OS.Type != nil {
		m.Arch = d.OS.Type.Arch
	}
	mark, err := parseMark(d)
	if err != nil {
		return Machine{}, mark, err
	}
	m.Mark, m.Type = mark.Mark, mark.typeOf(typeOf(d))
	for _, p := range parts {
		if err := p.parse(d, mark, &m); err != nil {
			return Machine{}, mark, err
		}
	}
	return m, mark, nil
}
