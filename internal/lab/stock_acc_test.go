//go:build acc

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccDefaultConfigHost_QEMUOwnsRunningDisks(t *testing.T) {
	l := sharedLab(t)
	h, err := l.DefaultConfigHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.Dir, "pools", "ssd", "data.img")
	if err := makeImage(file, lunSize, []byte("content")); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // libvirt restores root as the owner of files whose owner it did not record
		if err := os.Chown(file, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	before := owner(t, file)
	disk := fmt.Sprintf(`<disk type='file' device='disk'>
  <driver name='qemu' type='raw'/>
  <source file='%s'/>
  <target dev='vda' bus='virtio'/>
</disk>`, filepath.Join(h.Pools, "ssd", "data.img"))
	guestUses(t, h, disk, "content", func() {
		if got := owner(t, file); got == before || got != owner(t, qemu(t, h)) {
			t.Errorf("while the guest runs the file is of %s, QEMU of %s", got, owner(t, qemu(t, h)))
		}
		if got := storedAt(t, file, 4096, len(fromGuest)); got != fromGuest {
			t.Errorf("the file has %q", got)
		}
	})
	if got := owner(t, file); got != before {
		t.Errorf("the file was of %s, is of %s afterwards", before, got)
	}
	if err := os.Remove(file); err != nil {
		t.Error(err)
	}
}

// owner is user:group of a file, or of a process.
func owner(t *testing.T, path string) string {
	t.Helper()
	out, err := run(t, "stat", "--format", "%U:%G", path)
	if err != nil {
		t.Fatal(err, out)
	}
	return strings.TrimSpace(out)
}

// qemu is the folder in /proc of the process of a host's only guest.
func qemu(t *testing.T, h *Host) string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, _ := os.ReadFile(file) // it may have ended since
		mounts, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo"))
		if strings.Contains(string(line), "qemu-system") && strings.Contains(string(mounts), filepath.Base(filepath.Dir(h.Dir))+"/"+h.Name+"/") {
			return filepath.Dir(file)
		}
	}
	t.Fatal("no QEMU")
	return ""
}
