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
		id = plain(id)
		return len(id) >= minID && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(plain(name), id) })
	}
	if len(d.IDs) > 0 && len(names) > 0 && !slices.ContainsFunc(d.IDs, isNamed) {
		return fmt.Errorf("its host knows it as %q, and the volume is %q", names, d.IDs)
	}
	return nil
}

// minID is how many digits an identifier has at least.
const minID = 4

// plain is an identifier without what standards and udev have before and between its digits.
func plain(id string) string {
	id = strings.NewReplacer("naa.", "", "eui.", "", "uuid.", "", "0x", "").Replace(strings.ToLower(id))
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, id)
}
