package host

import (
	"testing"

	"github.com/google/uuid"
	"libvirt.org/go/libvirtxml"
)

// A path is text in the XML, whatever characters it has.
func TestFileDisk_EscapesPath(t *testing.T) {
	const path = `/srv/R&D's/<b>"]]>`
	var d libvirtxml.Domain
	if err := d.Unmarshal(diskDomain("reader", uuid.New(), fileDisk("vda", path))); err != nil {
		t.Fatal(err)
	}
	if got := d.Devices.Disks[0].Source.File.File; len(d.Devices.Disks) != 1 || got != path {
		t.Errorf("it reads %q of %d disks", got, len(d.Devices.Disks))
	}
}
