package domainxml

import (
	"maps"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// WithoutDevices gives the XML of a stored definition without the disks and interfaces of those keys. A drive stays, empty.
func WithoutDevices(stored string, disks, interfaces []string) (string, error) {
	m, err := Parse(stored)
	if err != nil {
		return "", err
	}
	m.Disks, m.Interfaces = maps.Clone(m.Disks), maps.Clone(m.Interfaces)
	for _, key := range disks {
		if d, has := m.Disks[key]; has && IsDrive(d.Device) {
			d.Volume, d.Entering = volume.Volume{}, false
			m.Disks[key] = d
			continue
		}
		delete(m.Disks, key)
	}
	for _, key := range interfaces {
		delete(m.Interfaces, key)
	}
	return Update(stored, m)
}
