//go:build acc

package content_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// The folder belongs to a pool whose volume list is stale.
func TestAccMakeDiskImage_StalePool(t *testing.T) {
	l := acctest.Lab(t)
	f := host.NewRegistry(map[string]host.Config{"host-a": {URI: l.Hosts["host-a"].URI}})
	t.Cleanup(f.Close)
	h, err := f.Host("host-a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.Hosts["host-a"].Dir, "pools", "ssd", "disk.img")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = h.CreateVolume(t.Context(), "ssd", libvirtxml.StorageVolume{
		Name: "disk.img", Capacity: &libvirtxml.StorageVolumeSize{Value: 1 << 20},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "qcow2"}},
	}, false)
	if !errors.Is(err, host.ErrExists) {
		t.Error("a file that is not listed:", err)
	}
	if err := content.MakeDiskImage(t.Context(), h, path, 8<<20); err != nil {
		t.Error("it is there:", err)
	}
	if got, err := os.ReadFile(path); string(got) != "precious" {
		t.Errorf("it has become %q, %v", got, err)
	}
	if err := content.MakeDiskImage(t.Context(), h, filepath.Join(filepath.Dir(path), "other.img"), 8<<20); !errors.Is(err, host.ErrFollowsLinks) {
		t.Error("its mount follows links:", err)
	}
	acctest.RefuseLinks(t, l.Hosts["host-a"], filepath.Dir(path))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := content.MakeDiskImage(t.Context(), h, path, 8<<20); err != nil {
		t.Error("it is gone:", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 8<<20 {
		t.Errorf("it was not made: %v, %v", info, err)
	}
	if err := h.DeleteVolume(t.Context(), "ssd", "disk.img"); err != nil {
		t.Error(err)
	}
}
