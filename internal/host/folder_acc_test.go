//go:build acc

package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func raw(name string) libvirtxml.StorageVolume {
	return libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1 << 20}, Allocation: &libvirtxml.StorageVolumeSize{},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}
}

// A file is made only where links can't be followed, over nothing that has its name, and no pool is left, also not that of a killed apply.
func TestAccCreateIn(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	dir := filepath.Join(t.TempDir(), "with space")
	in := func(name string) string { return filepath.Join(dir, name) }
	target := filepath.Join(t.TempDir(), "target")
	err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(in("plain"), []byte("precious"), 0o600), os.Symlink(target, in("link")), syscall.Mkfifo(in("fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	err = h.CreateIn(t.Context(), dir, raw("disk.img"))
	if !errors.Is(err, host.ErrFollowsLinks) || !strings.Contains(err.Error(), "nosymfollow") {
		t.Errorf("on a mount that follows links: %v", err)
	}
	if _, err := os.Lstat(in("disk.img")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made nevertheless: %v", err)
	}
	acctest.RefuseLinks(t, on, dir)
	sum := sha256.Sum256([]byte(dir))
	left := "virtclaim-folder-" + hex.EncodeToString(sum[:8])
	leave := func() { virsh(t, on, "pool-create-as", left, "dir", "--target", dir+"/.") }
	leave()
	if err := h.CreateIn(t.Context(), dir, raw("disk.img")); err != nil {
		t.Error(err)
	}
	if is, err := os.Stat(in("disk.img")); err != nil || is.Size() != 1<<20 {
		t.Errorf("it is %v, %v", is, err)
	}
	for name, want := range map[string]bool{"disk.img": true, "plain": true, "link": false, "fifo": true} {
		if err := h.CreateIn(t.Context(), dir, raw(name)); err == nil || errors.Is(err, host.ErrExists) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if content, err := os.ReadFile(in("plain")); string(content) != "precious" {
		t.Errorf("it has become %q, %v", content, err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target of the link: %v", err)
	}
	leave()
	if err := errors.Join(h.EndFolder(t.Context(), dir), h.EndFolder(t.Context(), dir)); err != nil {
		t.Error(err)
	}
	if pools := virsh(t, on, "pool-list", "--all", "--name"); strings.Contains(pools, "virtclaim-folder-") {
		t.Errorf("it is left:\n%s", pools)
	}
}

// An apply makes several files in one folder, which also is a storage pool.
func TestAccCreateIn_SeveralAtOnce(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	dir := t.TempDir()
	virsh(t, on, "pool-create-as", "another", "dir", "--target", dir)
	acctest.Undo(t, func(ctx context.Context) error {
		_, err := on.Virsh(ctx, "pool-destroy", "another")
		return err
	})
	acctest.RefuseLinks(t, on, dir)
	var all errgroup.Group
	for _, name := range []string{"a", "b", "c"} {
		all.Go(func() error { return h.CreateIn(t.Context(), dir, raw(name)) })
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}
