package host

import (
	"errors"
	"testing"

	"github.com/digitalocean/go-libvirt"
)

func TestOnlyAnEjectCanBeLocked(t *testing.T) {
	failed := libvirt.Error{Code: uint32(libvirt.ErrOperationFailed)}
	const full, empty = `<disk device="cdrom"><source file="/a"/></disk>`, `<disk device="cdrom"/>`
	for name, c := range map[string]struct {
		device string
		err    error
		locked bool
	}{
		"an eject":              {empty, failed, true},
		"an eject that is done": {empty, nil, false},
		"an eject by nobody":    {empty, libvirt.Error{Code: uint32(libvirt.ErrNoDomain)}, false},
		"an insertion":          {full, failed, false},
	} {
		err := orLocked(c.device, c.err)
		if errors.Is(err, ErrLocked) != c.locked || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
