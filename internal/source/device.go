package source

import (
	"fmt"
	"slices"
	"strings"
)

// Device tells the device of a volume from another one of the same host.
type Device struct {
	// Least and Most are the sizes in bytes that it may have.
	Least, Most int64
	// IDs are its serial number and world wide identifiers, as far as the volume has them.
	IDs []string
}

// Check returns an error if a device with that size, and with the names that its host has for it, is another one. Where the volume or the
// host has no names, the size alone decides.
func (d Device) Check(size int64, names []string) error {
	if size < d.Least || size > d.Most {
		return fmt.Errorf("it has %d bytes, and the volume has from %d to %d", size, d.Least, d.Most)
	}
	isNamed := func(id string) bool {
		id = plain.Replace(strings.ToLower(id))
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(strings.ToLower(name), id) })
	}
	if len(d.IDs) > 0 && len(names) > 0 && !slices.ContainsFunc(d.IDs, isNamed) {
		return fmt.Errorf("its host knows it as %q, and the volume is %q", names, d.IDs)
	}
	return nil
}

// plain removes what standards have before an identifier, and udev does not.
var plain = strings.NewReplacer("naa.", "", "eui.", "", "uuid.", "", "0x", "")
