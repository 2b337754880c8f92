//go:build acc

package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// backedBy returns the header of a qcow2 image with that backing file.
func backedBy(backing string) []byte {
	head := make([]byte, 1<<16)
	copy(head, "QFI\xfb")
	binary.BigEndian.PutUint32(head[4:], 2)
	binary.BigEndian.PutUint64(head[8:], 512)
	binary.BigEndian.PutUint32(head[16:], uint32(len(backing)))
	binary.BigEndian.PutUint32(head[20:], 16)
	binary.BigEndian.PutUint64(head[24:], 1<<20)
	copy(head[512:], backing)
	return head
}

// qedBackedBy returns the header of a QED image, whose format libvirt can't name once it has a backing file.
func qedBackedBy(backing string) []byte {
	head := make([]byte, 1<<16)
	copy(head, "QED\x00")
	binary.LittleEndian.PutUint32(head[4:], 1<<16)
	binary.LittleEndian.PutUint32(head[8:], 4)
	binary.LittleEndian.PutUint32(head[12:], 1)
	binary.LittleEndian.PutUint64(head[16:], 1)
	binary.LittleEndian.PutUint64(head[48:], 1<<20)
	binary.LittleEndian.PutUint32(head[56:], 512)
	binary.LittleEndian.PutUint32(head[60:], uint32(len(backing)))
	copy(head[512:], backing)
	return head
}

// The guest of a raw disk can write a header, and libvirt copies the backing file in it into the description of the volume: no such
// header prevents the inspection of other volumes.
func TestAccOverlays_HeadsThatGuestsWrite(t *testing.T) {
	l := acctest.Lab(t)
	h, on := hostA(t, l)
	for name, head := range map[string][]byte{
		"bytes": backedBy("/tmp/\xff\xfe\x80x"), "escape": backedBy("/tmp/\x1b[2K"), "surrogate": backedBy("/tmp/\xed\xa0\x80"),
		"noncharacter": backedBy("/tmp/\xef\xbf\xbe"), "qed": qedBackedBy("/tmp/x"), "long": backedBy("/" + strings.Repeat("x", 300)),
	} {
		t.Run(name, func(t *testing.T) {
			err := h.CreateVolume(t.Context(), "ssd", libvirtxml.StorageVolume{
				Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1 << 20},
				Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
			}, false)
			if err != nil {
				t.Fatal(err)
			}
			acctest.Undo(t, func(ctx context.Context) error { return h.DeleteVolume(ctx, "ssd", name) })
			path := filepath.Join(on.Dir, "pools", "ssd", name)
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				_, err = file.Write(head)
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
			for n, look := range []func() ([]host.StorageVolume, error){
				func() ([]host.StorageVolume, error) { return h.Overlays(t.Context()) },
				func() ([]host.StorageVolume, error) { return h.KnownOverlays(t.Context(), path) },
			} {
				found, err := look()
				if found = slices.DeleteFunc(found, func(v host.StorageVolume) bool { return v.Name == name }); err != nil || len(found) > 0 {
					t.Errorf("%d: %v, %v", n, found, err)
				}
			}
			isHidden := name == "qed" || name == "long"
			if v, err := h.Volume(t.Context(), "ssd", name); errors.Is(err, host.ErrUndescribed) != isHidden || err != nil && !isHidden || v.Path != path {
				t.Errorf("%+v: %v", v, err)
			}
		})
	}
}

// A pool outside of the configured storage that is inactive, or whose folder is gone, is neither an obstacle nor stopped. One of the configured
// storage may have overlays.
func TestAccOverlays_PoolsThatCannotBeListed(t *testing.T) {
	l := acctest.Lab(t)
	on := l.Hosts["host-a"]
	virsh := func(args ...string) string { t.Helper(); return acctest.Must(on.Virsh(t.Context(), args...))(t) }
	for _, name := range []string{"inactive", "gone"} {
		folder := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		virsh("pool-define-as", name, "dir", "--target", folder)
		acctest.Undo(t, func(ctx context.Context) error {
			_, _ = on.Virsh(ctx, "pool-destroy", name)
			_, err := on.Virsh(ctx, "pool-undefine", name)
			return err
		})
		if name == "inactive" {
			continue
		}
		virsh("pool-start", name)
		virsh("vol-create-as", name, "volume", "1M")
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "inactive", "gone"} { // the last one is stopped
		storage := map[string]string{"fast": "ssd"}
		if name != "" {
			storage["slow"] = name
		}
		f := host.NewRegistry(map[string]host.Config{"host-a": {URI: on.URI, Storage: storage}})
		t.Cleanup(f.Close)
		h, err := f.Host("host-a")
		if err != nil {
			t.Fatal(err)
		}
		found, err := h.Overlays(t.Context())
		for _, v := range found {
			if v.Pool != "ssd" {
				t.Errorf("%+v may be an overlay", v)
			}
		}
		if name == "" && err != nil || name != "" && (err == nil || !strings.Contains(err.Error(), "virsh pool-start "+name)) {
			t.Errorf("the configured pool %q: %v", name, err)
		}
		if name == "" && !strings.Contains(virsh("pool-list"), "gone") {
			t.Error("the pool was stopped")
		}
	}
}
