package domainxml

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Namespace is the XML namespace of virtclaim's element in a domain's <metadata>.
const Namespace = namespaces + "1"

// namespaces is the beginning of those of all versions.
const namespaces = "https://virtclaim.io/libvirt/domain/"

// The phases of a machine.
const (
	// Creating is the phase until a creation is complete, so that an interrupted one can be resumed.
	Creating = "creating"
	// Ready is the phase afterwards.
	Ready = "ready"
)

// Metadata is what virtclaim records in a domain's metadata about the machine as a whole.
type Metadata struct {
	// Owner is the provider's owner; empty when none is configured.
	Owner string `xml:"owner,attr,omitempty"`
	// Phase is Creating or Ready; empty in a domain that virtclaim did not create.
	Phase string `xml:"phase,attr,omitempty"`
	// Creation identifies the apply that creates the domain; empty when the machine is Ready.
	Creation string `xml:"creation,attr,omitempty"`
	Move
}

// Move is the record of a move to another host. The stored definitions on both hosts have it until the move is complete.
type Move struct {
	// From and To are the keys of the hosts, ID is that of the move; empty without one.
	From string `xml:"moves-from,attr,omitempty"`
	To   string `xml:"moves-to,attr,omitempty"`
	ID   string `xml:"move,attr,omitempty"`
	// Autostart tells that the source has started the domain when it booted; it does not during the move.
	Autostart bool `xml:"moves-autostart,attr,omitempty"`
	// Arrives is set in the target's definition as long as the domain has never been there: libvirt replaces that definition when the guest
	// comes.
	Arrives bool `xml:"arrives,attr,omitempty"`
}

// machineMetadata is the element in <metadata>. Beside Metadata it records what a <disk> can't express.
type machineMetadata struct {
	XMLName xml.Name `xml:"https://virtclaim.io/libvirt/domain/1 machine"`
	Metadata
	// UUID is the domain's UUID. It is ignored in another domain, such as a clone that was created with the metadata of its
	// original.
	UUID string `xml:"uuid,attr,omitempty"`
	// Type is the configured machine type: libvirt stores the type that an alias resolves to.
	Type string `xml:"machine-type,attr,omitempty"`
	// StoredType is the type that libvirt has stored for Type, if the name of the alias does not show it.
	StoredType string `xml:"stored-type,attr,omitempty"`
	// CPU is the configured CPU: libvirt replaces it with a computed one in the running domain.
	CPU string `xml:"cpu,attr,omitempty"`
	// CPUFeatures are the configured features of the CPU, for the same reason.
	CPUFeatures string `xml:"cpu-features,attr,omitempty"`
	// HotplugPorts is the configured number: libvirt adds more.
	HotplugPorts *uint          `xml:"hotplug-ports,attr"`
	Disks        []diskMetadata `xml:"disk"`
	// Filesystems are those with the folder of a binding.
	Filesystems []diskMetadata `xml:"filesystem"`
	// Configured are attributes that were configured explicitly: see Machine.configured.
	Configured []string `xml:"configured"`
	// Remaining are kinds of device that are kept although no attribute describes them.
	Remaining []string `xml:"remaining"`
	// Password is the version of the display's password.
	Password *int64 `xml:"password-version"`
	// DevicesXML is the text as configured.
	DevicesXML string `xml:"devices-xml,omitempty"`
	// DomainXML is the text as configured, StoredXML what libvirt has made of it; empty while that is not known.
	DomainXML string `xml:"domain-xml,omitempty"`
	StoredXML string `xml:"stored-xml,omitempty"`
	// KeptState are kinds of state that libvirt may keep beside the domain's disks.
	KeptState []string `xml:"kept-state"`
}

type diskMetadata struct {
	Key      string `xml:"key,attr"`
	Capacity *int64 `xml:"capacity,attr"`
	// Tentative is set until the guard has granted the disk's images.
	Tentative bool `xml:"tentative,attr,omitempty"`
	// Configured are the names of settings that were configured explicitly and that the device does not show, because it may also have them
	// by default.
	Configured string `xml:"configured,attr,omitempty"`
	// CopyOnRead is recorded for drives only, whose device can't express it.
	CopyOnRead bool            `xml:"copy-on-read,attr,omitempty"`
	Images     []imageMetadata `xml:"image"`
}

type imageMetadata struct {
	// Name is the name of the image that the record applies to.
	Name       string            `xml:"name,attr"`
	AccessMode volume.AccessMode `xml:"access-mode,attr,omitempty"`
	Generation string            `xml:"generation,attr,omitempty"`
	Binding    string            `xml:"binding,attr,omitempty"`
	Hosts      []string          `xml:"host"`
}

func newMachineMetadata(of Machine) machineMetadata {
	m := machineMetadata{Metadata: of.Metadata, Type: of.Type, CPU: of.CPU.note(), HotplugPorts: of.HotplugPorts}
	for _, key := range slices.Sorted(maps.Keys(of.Disks)) {
		v := of.Disks[key].Volume
		d := diskMetadata{
			Key: key, Capacity: v.Capacity, Tentative: of.Disks[key].Tentative, Configured: of.Disks[key].configured(key),
			CopyOnRead: v.CopyOnRead && IsDrive(of.Disks[key].Device),
		}
		d.Images = newImagesMetadata(v)
		m.Disks = append(m.Disks, d)
	}
	for _, key := range of.BoundFolders() {
		f := of.Filesystems[key]
		m.Filesystems = append(m.Filesystems, diskMetadata{
			Key: key, Capacity: f.Volume.Capacity, Tentative: f.Tentative, Images: newImagesMetadata(f.Volume),
		})
	}
	m.Configured, m.DevicesXML, m.DomainXML = of.configured(), of.DevicesXML, of.DomainXML
	m.CPUFeatures = of.CPU.featureNote()
	if of.Graphics != nil {
		m.Password = of.Graphics.PasswordVersion
	}
	return m
}

func newImagesMetadata(v volume.Volume) (all []imageMetadata) {
	for _, i := range v.Images {
		all = append(all, imageMetadata{i.Name, i.AccessMode, i.Generation, i.Binding, i.Hosts})
	}
	return all
}

// typeOf returns the configured type of a machine whose stored type is given. While the machine is being created, the type that
// libvirt has resolved it to is not recorded yet.
func (m machineMetadata) typeOf(stored string) string {
	if m.Type != "" && (SameMachineType(m.Type, stored) || m.StoredType == stored || m.Phase == Creating) {
		return m.Type
	}
	return stored
}

// wasConfigured reports whether the setting with that name was configured explicitly.
func (m diskMetadata) wasConfigured(name string) bool {
	return slices.Contains(strings.Fields(m.Configured), name)
}

func (m machineMetadata) disk(key string) diskMetadata { return recordOf(m.Disks, key) }

func recordOf(all []diskMetadata, key string) diskMetadata {
	for _, d := range all {
		if d.Key == key {
			return d
		}
	}
	return diskMetadata{}
}

// complete adds the recorded facts about its volume to a disk that was read from a device. A device whose access mode or chain was
// changed outside of Terraform overrides the record. A drive, and a disk that is configured as read-only, only reads with any access
// mode. Below an overlay that was added outside of Terraform the record stays valid.
func (m diskMetadata) complete(d *Disk) {
	v := &d.Volume
	above := len(v.Images) - len(m.Images)
	if len(m.Images) == 0 || above < 0 ||
		!slices.EqualFunc(m.Images, v.Images[above:], func(m imageMetadata, i volume.Image) bool { return m.Name == i.Name }) {
		return
	}
	if above > 0 {
		m.completeImages(v.Images[above:])
		return
	}
	reads := v.Images[0].AccessMode == volume.ReadShared && (IsDrive(d.Device) || m.wasConfigured(readOnly))
	if !reads && m.Images[0].AccessMode != v.Images[0].AccessMode {
		return
	}
	v.Capacity = m.Capacity
	v.CopyOnRead = v.CopyOnRead || m.CopyOnRead
	m.completeImages(v.Images)
}

func (m diskMetadata) completeImages(images []volume.Image) {
	for n, metadata := range m.Images {
		i := &images[n]
		i.AccessMode, i.Generation, i.Binding, i.Hosts = metadata.AccessMode, metadata.Generation, metadata.Binding, metadata.Hosts
	}
}

// applyMetadata writes the metadata of m, and adds the kinds of state that libvirt keeps of the domain as it is now to those that it has
// kept before.
func applyMetadata(d *libvirtxml.Domain, m Machine, kept []string) error {
	metadata := newMachineMetadata(m)
	if stored := typeOf(d); m.Type != "" && !SameMachineType(m.Type, stored) {
		metadata.StoredType = stored
	}
	metadata.Remaining, metadata.StoredXML = remainingDevices(d, m), storedXML(d, m)
	metadata.KeptState = slices.Concat(kept, keptState(d))
	slices.Sort(metadata.KeptState)
	metadata.KeptState = slices.Compact(metadata.KeptState)
	return setMetadata(d, metadata)
}

// setMetadata replaces virtclaim's element and keeps all other elements.
func setMetadata(d *libvirtxml.Domain, metadata machineMetadata) error {
	metadata.UUID = d.UUID
	ours, err := xml.Marshal(metadata)
	if err != nil {
		return fmt.Errorf("write the metadata of domain %s: %w", d.Name, err)
	}
	others, _, err := splitMetadata(d)
	if err != nil {
		return err
	}
	d.Metadata = &libvirtxml.DomainMetadata{XML: others + string(ours)}
	return nil
}

func parseMetadata(d *libvirtxml.Domain) (machineMetadata, error) {
	_, ours, err := splitMetadata(d)
	if err != nil || ours == "" {
		return machineMetadata{}, err
	}
	var kind struct{ XMLName xml.Name }
	if err := xml.Unmarshal([]byte(ours), &kind); err == nil && kind.XMLName.Local != "machine" {
		return machineMetadata{}, nil // a journal
	}
	var m machineMetadata
	if err := xml.Unmarshal([]byte(ours), &m); err != nil {
		return machineMetadata{}, unreadable(d, err)
	}
	if m.UUID != "" && m.UUID != d.UUID {
		m.Metadata = Metadata{}
	}
	return m, nil
}

// unreadable returns the error for metadata in virtclaim's namespace that virtclaim has not written. Such metadata block all checks of
// which domains of the host use a volume.
func unreadable(d *libvirtxml.Domain, err error) error {
	return fmt.Errorf("read virtclaim's metadata of domain %[1]s: %[2]w. If the domain is not virtclaim's, remove them: virsh metadata "+
		"%[1]s %[3]s --remove --config (and --live if it runs)", d.Name, err, Namespace)
}

// splitMetadata cuts virtclaim's element out of the domain's metadata. The error of one of another version is newer.Err, also beside one of
// this version.
func splitMetadata(d *libvirtxml.Domain) (others, ours string, err error) {
	if d.Metadata == nil {
		return "", "", nil
	}
	text := d.Metadata.XML
	others = text
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		start := dec.InputOffset()
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return others, ours, nil
		}
		if err != nil {
			return "", "", fmt.Errorf("read the metadata of domain %s: %w", d.Name, err)
		}
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if err := dec.Skip(); err != nil {
			return "", "", fmt.Errorf("read the metadata of domain %s: %w", d.Name, err)
		}
		version, isOurs := strings.CutPrefix(element.Name.Space, namespaces)
		if !isOurs {
			continue
		}
		if err := newer.Version(cmp.Or(version, "?")); err != nil {
			return "", "", fmt.Errorf("virtclaim's metadata of domain %s can't be read: %w", d.Name, err)
		}
		if end := dec.InputOffset(); ours == "" {
			others, ours = text[:start]+text[end:], text[start:end]
		}
	}
}
