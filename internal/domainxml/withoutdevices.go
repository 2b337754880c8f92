package domainxml

import (
	"maps"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// WithoutDevices renders a stored definition without the disks with those keys and the interfaces with those MAC addresses,
// which are the same in a running domain while keys may differ. A drive is kept, empty.
func (d *Domain) WithoutDevices(disks, macs []string) (string, error) {
	m, err := d.Machine()
	if err != nil {
		return "", err
	}
	m.Disks, m.Interfaces = maps.Clone(m.Disks), maps.Clone(m.Interfaces)
	for _, key := range disks {
		if disk, has := m.Disks[key]; has && IsDrive(disk.Device) {
			disk.Volume, disk.Tentative = volume.Volume{}, false
			m.Disks[key] = disk
			continue
		}
		delete(m.Disks, key)
	}
	maps.DeleteFunc(m.Interfaces, func(_ string, i Interface) bool { return slices.Contains(macs, i.MAC) })
	return d.Update(m)
}
