package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// remainingDevices returns the kinds of device, of which a machine has at most one, that a domain defined outside of Terraform still has
// when the machine has none: the device that the attribute described is removed, the remaining ones are ignored.
func remainingDevices(d *libvirtxml.Domain, m Machine) (names []string) {
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

// ignoresRemaining reports whether a domain's devices of a kind are such remaining ones.
func (m machineMetadata) ignoresRemaining(kind string) bool {
	return slices.Contains(m.Remaining, kind)
}
