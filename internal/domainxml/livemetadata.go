package domainxml

import (
	"encoding/xml"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Unnoted returns the keys, sorted, of the disks that a running domain has as in want, but whose images its metadata do not record,
// because the disk was started, or its chain changed, without virtclaim. A disk is left out when the previous definition records
// another volume under the same name: the guest may have opened that one.
func (d *Domain) Unnoted(was, want Machine) ([]string, error) {
	is, err := d.Machine()
	if err != nil {
		return nil, err
	}
	var keys []string
	for key, disk := range want.Disks {
		images := disk.Volume.Images
		isOpen := slices.EqualFunc(images, is.Disks[key].Volume.Images, func(a, b volume.Image) bool { return a.Name == b.Name })
		if len(images) > 0 && isOpen && !d.metadata.disk(key).notes(images) && !was.Disks[key].isRemade(disk) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// notes reports whether the metadata records the identities of these images.
func (m diskMetadata) notes(images []volume.Image) bool {
	return slices.EqualFunc(m.Images, images, func(m imageMetadata, i volume.Image) bool {
		return m.Name == i.Name && (m.Generation != "" || i.Generation == "")
	})
}

// LiveMetadata returns virtclaim's metadata for a running domain that has the disks with those keys, or is about to get them plugged in.
// The records of other disks are kept.
func (d *Domain) LiveMetadata(want Machine, keys []string) (string, error) {
	metadata, full := d.metadata, newMachineMetadata(want)
	if metadata.Phase == "" {
		metadata.CPU = unknownCPU
		is, err := d.Machine()
		if err != nil {
			return "", err
		}
		metadata.DomainXML, metadata.DevicesXML = is.DomainXML, is.DevicesXML
		metadata.Configured = allSettings() // all attributes of the running domain continue to be read
	}
	metadata.Metadata, metadata.UUID, metadata.Type = full.Metadata, d.xml.UUID, full.Type
	metadata.Disks = slices.DeleteFunc(slices.Clone(metadata.Disks), func(m diskMetadata) bool { return slices.Contains(keys, m.Key) })
	for _, m := range full.Disks {
		if slices.Contains(keys, m.Key) {
			metadata.Disks = append(metadata.Disks, m)
		}
	}
	text, err := xml.Marshal(metadata)
	if err != nil {
		return "", fmt.Errorf("write the metadata of domain %s: %w", d.xml.Name, err)
	}
	return string(text), nil
}
