package domainxml

import (
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// WithoutDevices gives the XML of a stored definition without the disks of those keys and the interfaces of those MAC addresses, which
// are the same in a running domain where keys may not be. A drive stays, empty.
func WithoutDevices(stored string, disks, macs []string) (string, error) {
	m, err := Parse(stored)
	if err != nil {
		return "", err
	}
	m.Disks, m.Interfaces = maps.Clone(m.Disks), maps.Clone(m.Interfaces)
	for _, key := range disks {
		if d, has := m.Disks[key]; has && IsDrive(d.Device) {
			d.Volume, d.Tentative = volume.Volume{}, false
			m.Disks[key] = d
			continue
		}
		delete(m.Disks, key)
	}
	maps.DeleteFunc(m.Interfaces, func(_ string, i Interface) bool { return slices.Contains(macs, i.MAC) })
	return Update(stored, m)
}
