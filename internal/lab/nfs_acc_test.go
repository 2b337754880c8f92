//go:build acc

package lab

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccNFS_GuestUsesIt(t *testing.T) {
	l := sharedLab(t)
	nfs, err := l.NFS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := nfs.AddDir("data")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir.Path, "disk.img")
	if err := makeImage(file, lunSize, []byte("content")); err != nil {
		t.Fatal(err)
	}
	// The disk has no place for a port, and is opened as root, which has all rights on the server.
	disk := fmt.Sprintf(`<disk type='network' device='disk'>
  <driver name='qemu' type='raw' cache='none'/>
  <source protocol='nfs' name='%s/disk.img'><host name='%s'/><identity user='+0' group='+0'/></source>
  <target dev='vda' bus='virtio'/>
</disk>`, dir.Export, dir.Server)
	guestUses(t, l.Hosts["host-a"], disk, "content", func() {
		if got := storedAt(t, file, 4096, len(fromGuest)); got != fromGuest {
			t.Errorf("the file has %q", got)
		}
	})
	if err := nfs.RemoveDir(dir); err != nil {
		t.Error(err)
	}
	if out, err := run(t, "qemu-img", "info", dir.URL("disk.img")); err == nil || !strings.Contains(out, "NFS3ERR_NOENT") {
		t.Errorf("it is still there: %v: %s", err, out)
	}
}
