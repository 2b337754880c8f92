package domainxml

import (
	"encoding/xml"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// CopyTarget is the disk of a journal's domain into which a clone is copied.
const CopyTarget = "vda"

// Journal is a temporary domain that records on the host which volume is being created, because storage volumes have no metadata and a
// half-copied image looks complete. It is removed when the volume is complete. The same domain also copies a clone.
type Journal struct {
	// Name is the domain's name. Names of domains are unique, so it also locks the volume.
	Name string
	UUID string
	Note Note
	// Copy is the chain that a clone is copied from, below the volume itself; nil when there is nothing (more) to copy.
	Copy *volume.Volume
}

// Note is the content of a journal.
type Note struct {
	// Owner is the provider's owner; empty when none is configured.
	Owner string `xml:"owner,attr,omitempty"`
	// Phase is how far a volume is that is filled; empty for others.
	Phase string `xml:"phase,attr,omitempty"`
	Pool  string `xml:"pool,attr"`
	// Volume is the storage volume's name, and Prefix its configured prefix if the rest was generated.
	Volume string `xml:"volume,attr"`
	Prefix string `xml:"prefix,attr,omitempty"`
	// Generation is the generation of the image.
	Generation string `xml:"generation,attr"`
	// From is the key of the host that a disk moves from, FromPool the storage pool that has it there under the same name; empty for what
	// is created.
	From     string `xml:"moves-from,attr,omitempty"`
	FromPool string `xml:"moves-from-pool,attr,omitempty"`
	// To and ToPool are where it moves to, in what holds it on the former host.
	To     string `xml:"moves-to,attr,omitempty"`
	ToPool string `xml:"moves-to-pool,attr,omitempty"`
	// Creator is the UUID of the domain that runs while the volume is being created; empty for the journal's own one.
	Creator string `xml:"creator,attr,omitempty"`
	// Bases are the names of the shared images below the volume, the lowest one first.
	Bases []string `xml:"base"`
	// Target is the <disk> element of the volume that the storage volume's content is written onto; empty when there is none.
	Target string `xml:"target,omitempty"`
	// Filled is what all of the target has; empty if that is not known, or not all is written.
	Filled string `xml:"filled,attr,omitempty"`
	// Beat is a counter that is incremented in the running domain while the volume is being created.
	Beat int `xml:"beat,attr,omitempty"`
}

// Element returns the note as an element of a domain's metadata.
func (n Note) Element() (string, error) {
	text, err := xml.Marshal(journalMetadata{Note: n})
	return string(text), err
}

type journalMetadata struct {
	XMLName xml.Name `xml:"https://virtclaim.io/libvirt/domain/1 content"`
	Note
}

// copierMemory is the memory of a domain without a guest, in MiB.
const copierMemory = 16

// BuildJournal returns the XML of a journal.
func BuildJournal(j Journal) (string, error) {
	note, err := j.Note.Element()
	if err != nil {
		return "", fmt.Errorf("write the journal %s: %w", j.Name, err)
	}
	d := withoutGuest(j.Name, j.UUID)
	d.Description = "virtclaim is making the volume " + j.Note.Volume + " in the storage pool " + j.Note.Pool
	if j.Note.Target != "" {
		d.Description = "virtclaim is filling a volume from " + j.Note.Volume + " in the storage pool " + j.Note.Pool
		d.Features = &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}} // the disk to copy is plugged in
	}
	if j.Note.From != "" {
		d.Description = "virtclaim is moving the disk " + j.Note.Volume + " from host " + j.Note.From + " to storage pool " + j.Note.Pool
	}
	d.Metadata = &libvirtxml.DomainMetadata{XML: note}
	if j.Copy != nil {
		disk := libvirtxml.DomainDisk{Device: "disk", Target: &libvirtxml.DomainDiskTarget{Dev: CopyTarget, Bus: "virtio"}}
		applyVolume(&disk, *j.Copy)
		d.Devices.Disks = []libvirtxml.DomainDisk{disk}
	}
	text, err := d.Marshal()
	if err != nil {
		return "", fmt.Errorf("write the journal %s: %w", j.Name, err)
	}
	return text, nil
}

// target is the image onto which a journal's domain writes; ok is false when there is none.
func (d *Domain) target() (i volume.Image, ok bool) {
	note, is, err := d.Journal()
	if err != nil || !is || note.Target == "" {
		return i, false
	}
	var disk libvirtxml.DomainDisk
	if err := disk.Unmarshal(note.Target); err != nil {
		return i, false
	}
	return writer(parseVolume(disk).Images[0]), true
}

// withoutGuest returns a domain that never runs a guest.
func withoutGuest(name, uuid string) *libvirtxml.Domain {
	return &libvirtxml.Domain{
		Type: "qemu", Name: name, UUID: uuid,
		Memory: &libvirtxml.DomainMemory{Value: copierMemory, Unit: "MiB"},
		OS:     &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Type: "hvm"}},
		Devices: &libvirtxml.DomainDeviceList{
			Controllers: []libvirtxml.DomainController{{Type: "usb", Model: "none"}},
			MemBalloon:  &libvirtxml.DomainMemBalloon{Model: "none"},
		},
	}
}

// MutexName is the name of the domain that serves as a host's mutex.
const MutexName = "virtclaim-mutex"

// BuildMutex returns the XML of a host's mutex.
func BuildMutex(uuid string) (string, error) {
	d := withoutGuest(MutexName, uuid)
	d.Description = "virtclaim changes several volumes of this host at once"
	return d.Marshal()
}

// ParseJournal reads the note of a journal; ok is false for a domain that is not a journal.
func ParseJournal(text string) (note Note, ok bool, err error) {
	d, err := Read(text)
	if err != nil {
		return Note{}, false, err
	}
	return d.Journal()
}

// Journal is the note of a journal; ok is false for a domain that is not a journal.
func (d *Domain) Journal() (note Note, ok bool, err error) {
	_, ours, err := splitMetadata(d.xml)
	if err != nil || ours == "" {
		return Note{}, false, err
	}
	var found struct {
		XMLName xml.Name
		Note
	}
	if err := xml.Unmarshal([]byte(ours), &found); err != nil {
		return Note{}, false, unreadable(d.xml, err)
	}
	return found.Note, found.XMLName.Local == "content", nil
}
