package host

import (
	"slices"
	"testing"
)

func TestDeviceNames_OfDisk(t *testing.T) {
	const disk = `<device><name>block_sdb_3600508b4</name><path>/sys/block/sdb</path>
  <devnode type='dev'>/dev/sdb</devnode>
  <devnode type='link'>/dev/disk/by-path/pci-0000:00:1f.2-ata-1</devnode>
  <devnode type='link'>/dev/disk/by-id/wwn-0x600508b400105e21</devnode>
  <capability type='storage'><block>/dev/sdb</block><drive_type>disk</drive_type><serial>3600508b400105e21</serial></capability>
</device>`
	want := []string{"wwn-0x600508b400105e21", "3600508b400105e21"}
	for device, want := range map[string][]string{
		"/dev/sdb": want, "/dev/disk/by-path/pci-0000:00:1f.2-ata-1": want, "/dev/disk/by-id/wwn-0x600508b400105e21": want,
		"/dev/sda": nil, "/dev/sd": nil, "": nil,
	} {
		if names, err := namesIn(disk, device); err != nil || !slices.Equal(names, want) {
			t.Errorf("%s: got %q, %v", device, names, err)
		}
	}
	if names, err := namesIn(`<device><name>pci_0</name><capability type='pci'/></device>`, ""); err != nil || names != nil {
		t.Errorf("got %q, %v", names, err)
	}
	if _, err := namesIn("<device", ""); err == nil {
		t.Error("no error")
	}
}
