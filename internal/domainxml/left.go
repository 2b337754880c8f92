package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// left are the kinds of device, of which a machine has one at most, that a domain made by hand has still when the machine has none:
// the one that the attribute described is gone, and the others are nobody's concern.
func left(d *libvirtxml.Domain, m Machine) (names []string) {
	_, _, hasDisplay := displayOf(d)
	for _, kind := range []struct {
		part part
		is   bool
	}{
		{serialPort, m.Serial == nil && len(d.Devices.Serials) > 0},
		{console, m.Console == nil && slices.ContainsFunc(d.Devices.Consoles, isVirtioConsole)},
		{graphics, m.Graphics == nil && hasDisplay},
		{rng, m.RNG == nil && slices.ContainsFunc(d.Devices.RNGs, readsDevice)},
	} {
		if kind.is {
			names = append(names, kind.part.name)
		}
	}
	return names
}

// leaves tells whether a domain's devices of a kind are those that were left.
func (m machineMark) leaves(kind string) bool { return slices.Contains(m.Left, kind) }
