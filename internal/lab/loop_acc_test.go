//go:build acc

package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func addBlockDevice(t *testing.T, l *Lab) BlockDevice {
	t.Helper()
	device, err := l.AddBlockDevice(t.Context(), lunSize, []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	return device
}

func blockDisk(path string) string {
	return fmt.Sprintf(`<disk type='block' device='disk'>
  <driver name='qemu' type='raw' cache='none'/>
  <source dev='%s'/>
  <target dev='vda' bus='virtio'/>
</disk>`, path)
}

func TestAccLoop_GuestUsesBlockDevice(t *testing.T) {
	l := sharedLab(t)
	device := addBlockDevice(t, l)
	guestUses(t, l.Hosts["host-a"], blockDisk(device.Path), "content", func() {
		if got := storedAt(t, device.Backing, 4096, len(fromGuest)); got != fromGuest {
			t.Errorf("the backing file has %q", got)
		}
	})
	if err := l.RemoveBlockDevice(t.Context(), device); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(device.Backing); device.attached() || !os.IsNotExist(err) {
		t.Errorf("%s is left, or its file (%v)", device.Path, err)
	}
}

// loopDevices lists the loop devices that have a file of a lab.
func loopDevices(t *testing.T, dir string) string {
	t.Helper()
	out, err := run(t, "losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
	if err != nil {
		t.Fatal(err, out)
	}
	var found []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, dir) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}
