package domainxml

import (
	"slices"

	"libvirt.org/go/libvirtxml"
)

// RNG is a source of randomness for the guest.
type RNG struct {
	// Source is a device on the host.
	Source string
}

var rng = part{
	name: "rng", single: true, apply: applyRNG, parse: parseRNG,
	same: func(live, want Machine) bool {
		return (live.RNG == nil) == (want.RNG == nil) && (live.RNG == nil || *live.RNG == *want.RNG)
	},
}

// applyRNG ignores random number generators whose backend is not a device of the host.
func applyRNG(d *libvirtxml.Domain, m Machine) {
	n := slices.IndexFunc(d.Devices.RNGs, readsDevice)
	switch {
	case m.RNG == nil && (n < 0 || metadataOf(d).ignoresRemaining("rng")):
	case m.RNG == nil:
		d.Devices.RNGs = slices.Delete(d.Devices.RNGs, n, n+1)
	case n < 0:
		d.Devices.RNGs = append(d.Devices.RNGs, libvirtxml.DomainRNG{Model: "virtio", Backend: &libvirtxml.DomainRNGBackend{
			Random: &libvirtxml.DomainRNGBackendRandom{Device: m.RNG.Source},
		}})
	default:
		d.Devices.RNGs[n].Backend.Random.Device = m.RNG.Source
	}
}

func readsDevice(r libvirtxml.DomainRNG) bool { return r.Backend != nil && r.Backend.Random != nil }

func parseRNG(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if n := slices.IndexFunc(d.Devices.RNGs, readsDevice); n >= 0 && !metadata.ignoresRemaining("rng") {
		m.RNG = &RNG{Source: d.Devices.RNGs[n].Backend.Random.Device}
	}
	return nil
}
