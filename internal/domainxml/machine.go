// Package domainxml turns a machine into libvirt's domain XML and back. It is pure: the same machine gives the same
// XML, and no host is queried. The source of every rule is libvirt's domain format
// (https://libvirt.org/formatdomain.html) unless a comment says otherwise.
package domainxml

import (
	"encoding/xml"
	"fmt"
	"maps"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Machine is the part of a libvirt domain that virtclaim manages. All other elements of a domain stay as they are when a Machine is
// applied to it.
type Machine struct {
	Name string
	// UUID is empty before libvirt has given the domain one.
	UUID string
	// VCPUs are its processors, MaxVCPUs the number up to which more can be hot-plugged; 0 is as many as VCPUs.
	VCPUs, MaxVCPUs uint
	CPU             CPU
	// Memory is that of the guest, MaxMemory the size up to which it can grow while it runs; 0 is as much as Memory. Both are in KiB,
	// libvirt's unit.
	Memory, MaxMemory uint
	// Title and Description are for people.
	Title, Description string
	// State is libvirt's domain state, and Autostart is true if the host starts the domain when it boots. They are not part of the
	// XML, but are queried from the host.
	State     string
	Autostart bool
	// Drift are changes made to the running domain only, outside of Terraform; all else is as stored.
	Drift Drift
	// Type is the machine type, an alias such as q35 or a full name; empty lets libvirt choose.
	Type string
	// Arch is the guest's architecture; empty lets libvirt choose.
	Arch string
	// DomainType is kvm, or qemu for emulation.
	DomainType string
	// HotplugPorts is how many PCI Express root ports a q35 has for devices; nil if not configured.
	HotplugPorts *uint
	// Boot is the kernel that is booted directly; nil boots from the disks.
	Boot *Boot
	// Run is what the init of virtclaim's initial RAM disk runs, as text for it; empty for other machines.
	Run string
	// ExitCode is that of what a machine ran that is off, and RunError why it could not be started; as far as its guest has written that.
	// They are in no XML.
	ExitCode *int
	RunError string
	// HasEnded is whether nothing had told the program to stop, and Output the end of what it has printed.
	HasEnded bool
	Output   string
	// Disks are keyed by the name that the user gave them.
	Disks map[string]Disk
	// Interfaces are keyed by the name that the user gave them.
	Interfaces map[string]Interface
	// Serial is the first serial port; nil when there is none.
	Serial *Serial
	// Firmware is nil if not configured.
	Firmware *Firmware
	// TPM is nil when there is no emulated one.
	TPM      *TPM
	Graphics *Graphics
	Video    *Video
	// DefaultVideo is what libvirt has chosen of the graphics card; what is configured is zero in it.
	DefaultVideo Video
	RNG          *RNG
	Watchdog     *Watchdog
	// Clock is nil for libvirt's default, UTC without timers.
	Clock *Clock
	// OnReboot and OnCrash are what libvirt does then; empty for its defaults, restart and destroy.
	OnReboot, OnCrash string
	// FWCfg are paths of files of the host that the guest finds in QEMU's fw_cfg device, by the names of the entries.
	FWCfg map[string]string
	// HyperV is true if a Windows guest gets the usual set of Hyper-V enlightenments.
	HyperV        bool
	MemoryBacking MemoryBacking
	Console       *Console
	// Filesystems are keyed by the name that the user gave them.
	Filesystems map[string]Filesystem
	// DevicesXML is libvirt's XML of further devices, as the user gave it.
	DevicesXML string
	// DomainXML is libvirt's XML of further elements of the domain, as the user gave it.
	DomainXML string
	// GuestAgent is true if there is a channel for QEMU's guest agent.
	GuestAgent bool
	// AgentPort is true if a running machine was started with that channel, AgentConnected if the guest has opened it.
	AgentPort, AgentConnected bool
	// Addresses are the IP addresses of a running machine's interfaces, by their key. They are in no XML.
	Addresses map[string][]string
	// Endpoints are the addresses of a running machine's displays and consoles.
	Endpoints Endpoints
	// Pending are changes that a running machine gets at its next start: see the function Pending.
	Pending []string
	// External are the disks, by key, whose chain was changed outside of Terraform.
	External map[string]External
	Metadata Metadata
}

// HardwareMatches reports whether is has the emulated hardware that m specifies, where m specifies it.
func (m Machine) HardwareMatches(is Machine) bool {
	return (m.Type == "" || SameMachineType(m.Type, is.Type)) && (m.Arch == "" || m.Arch == is.Arch) && m.DomainType == is.DomainType
}

// WithoutTentative is m with its tentative disks without volume and conflicting, and without its tentative filesystems, so that an update
// makes the guard's checks again.
func (m Machine) WithoutTentative() Machine {
	m.Filesystems = maps.Clone(m.Filesystems)
	maps.DeleteFunc(m.Filesystems, func(_ string, f Filesystem) bool { return f.Tentative })
	m.Disks = maps.Clone(m.Disks)
	for key, d := range m.Disks {
		if d.Tentative {
			d.Volume, d.Tentative, d.Conflicting = volume.Volume{}, false, true
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
	// Device is Fixed, LUN, CDROM or Floppy; Build treats an empty one as Fixed.
	Device string
	// Bus is virtio, scsi, sata, usb, ide or, of a floppy drive, fdc.
	Bus string
	// Target is the configured name in libvirt, such as vdb; if empty, virtclaim chooses one.
	Target string
	// ReadOnly configures a read-only device, also where the volume's access mode would allow writes.
	ReadOnly bool
	Tuning
	// DefaultSerial is the serial number if none is configured: the disk's key, or none.
	DefaultSerial string
	// BootOrder counts from 1; 0 is none.
	BootOrder uint
	// Ephemeral discards what a guest wrote when it stops (libvirt's <transient/>; the top image must be a file).
	Ephemeral bool
	// Tentative marks a disk in the stored definition that the guard has not admitted yet. It shows other machines that this one
	// requests the volume.
	Tentative bool
	// Conflicting is true if the stored definition and the running domain have different volumes, or if the disk is tentative. It then
	// has no volume, which differs from an empty drive: an update changes both to the configured volume.
	Conflicting bool
}

// WithTentative is m with the disks and filesystems of those keys marked as tentative.
func (m Machine) WithTentative(keys, folders []string) Machine {
	m.Filesystems = maps.Clone(m.Filesystems)
	for _, key := range folders {
		f := m.Filesystems[key]
		f.Tentative = true
		m.Filesystems[key] = f
	}
	m.Disks = maps.Clone(m.Disks)
	for _, key := range keys {
		d := m.Disks[key]
		d.Tentative = true
		m.Disks[key] = d
	}
	return m
}

// Serial is a serial port whose output may be logged.
type Serial struct {
	// LogFile is an absolute path on the host; empty is no log.
	LogFile string
}

// Build renders the XML of a new domain.
func Build(m Machine) (string, error) {
	d := skeleton(m)
	return apply(d, m)
}

// Update renders the domain's XML changed to m.
func (d *Domain) Update(m Machine) (string, error) {
	x, err := Unmarshal(d.text) // it is changed
	if err != nil {
		return "", err
	}
	return keepUnknown(x, d.text, func() (string, error) { return apply(x, m) })
}

// apply writes m into d and leaves equal elements unchanged, so that libvirt keeps addresses and names.
func apply(d *libvirtxml.Domain, m Machine) (string, error) {
	kept := keptState(d)
	for _, p := range parts {
		p.apply(d, m)
	}
	if err := applyMetadata(d, m, kept); err != nil {
		return "", err
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the domain's XML: %w", err)
	}
	return string(text), nil
}

// Parse reads a machine from a domain's XML, which libvirt or Build has written.
func Parse(text string) (Machine, error) {
	d, err := Read(text)
	if err != nil {
		return Machine{}, err
	}
	return d.Machine()
}

func parse(d *libvirtxml.Domain, metadata machineMetadata) (Machine, error) {
	m := Machine{Name: d.Name, UUID: d.UUID, DomainType: d.Type, Metadata: metadata.Metadata, Type: metadata.typeOf(typeOf(d))}
	if d.OS.Type != nil {
		m.Arch = d.OS.Type.Arch
	}
	for _, p := range parts {
		if err := p.parse(d, metadata, &m); err != nil {
			return Machine{}, err
		}
	}
	return m, nil
}
