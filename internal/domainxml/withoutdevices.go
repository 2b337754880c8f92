package domainxml

import (
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// WithoutDevices returns the XML of a stored definition without the disks with those keys and the interfaces with those MAC addresses,
// which are the same in a running domain while keys may differ. A drive is kept, empty.
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
