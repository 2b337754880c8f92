//go:build acc

package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func addExport(t *testing.T, l *Lab, spec NBDSpec) (*NBD, NBDExport) {
	t.Helper()
	nbd, err := l.NBD(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	export, err := nbd.AddExport(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return nbd, export
}

func TestAccNBD_GuestUsesIt(t *testing.T) {
	l := sharedLab(t)
	nbd, export := addExport(t, l, NBDSpec{Name: "images/data", Size: lunSize, Content: []byte("content")})
	disk := networkDisk(t, fmt.Sprintf("protocol='nbd' name='%s'", export.Name), export.Server, "")
	guestUses(t, l.Hosts["host-a"], disk, "content", func() {
		if out, err := run(t, "qemu-img", "info", export.URL()); err != nil {
			t.Errorf("a second client: %v: %s", err, out)
		}
		if got := storedAt(t, export.Path, 4096, len(fromGuest)); got != fromGuest {
			t.Errorf("the backing file has %q", got)
		}
	})
	if err := nbd.RemoveExport(t.Context(), export); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(export.Path); !os.IsNotExist(err) {
		t.Errorf("the backing file is left (%v)", err)
	}
	if out, err := run(t, "qemu-img", "info", export.URL()); err == nil {
		t.Errorf("it is still served: %s", out)
	}
}

func TestAccNBD_UnixSocket(t *testing.T) {
	l := sharedLab(t)
	nbd, export := addExport(t, l, NBDSpec{Name: "data", Size: lunSize, Content: []byte("content"), Unix: true})
	if out, err := run(t, "qemu-io", "-f", "raw", "-c", "read -v 0 512", export.URL()); err != nil || !strings.Contains(out, "content") {
		t.Errorf("%v: %s", err, out)
	}
	if err := nbd.RemoveExport(t.Context(), export); err != nil {
		t.Error(err)
	}
}

func TestAccNBD_ReadOnlyRefusesWrites(t *testing.T) {
	l := sharedLab(t)
	nbd, export := addExport(t, l, NBDSpec{Size: lunSize, ReadOnly: true})
	if out, err := run(t, "qemu-io", "-r", "-f", "raw", "-c", "read -P 0 0 512", export.URL()); err != nil {
		t.Errorf("a read: %v: %s", err, out)
	}
	if out, err := run(t, "qemu-io", "-f", "raw", "-c", "write 0 512", export.URL()); err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("a write: %v: %s", err, out)
	}
	if err := nbd.RemoveExport(t.Context(), export); err != nil {
		t.Error(err)
	}
}
