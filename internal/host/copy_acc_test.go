//go:build acc

package host_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// copier creates a volume and the domain that would copy into it.
func copier(t *testing.T, h *host.Host, dir string) string {
	t.Helper()
	err := h.CreateVolume(t.Context(), "ssd", libvirtxml.StorageVolume{
		Name: "copy", Capacity: &libvirtxml.StorageVolumeSize{Value: 1 << 20},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "qcow2"}},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	id, err := h.Define(t.Context(), fmt.Sprintf(`<domain type='qemu'><name>copier</name><memory unit='MiB'>16</memory>
<os><type>hvm</type></os><devices><disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='%s'/>
<target dev='vda' bus='virtio'/></disk></devices></domain>`, filepath.Join(dir, "pools", "ssd", "copy")))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAccCopy_EndsWithItsConnection(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	id := copier(t, h, labHost.Dir)
	for _, finished := range []bool{true, false} {
		release, err := h.StartCopier(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		// Another call that times out abandons the shared connection.
		if err := labHost.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.LookupByName(soon(t, 100*time.Millisecond), "nobody"); err == nil {
			t.Error("a frozen libvirtd answered")
		}
		if err := labHost.Thaw(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state, err := h.State(t.Context(), id); err != nil || !state.Active {
			t.Errorf("the copier is %s: %v", state, err)
		}
		if finished {
			if err := h.FinishCopier(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		release()
		if err := h.WaitStopped(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if err := h.FinishCopier(t.Context(), id); err == nil {
		t.Error("one that went off by itself was finished")
	}
	if err := h.StopCopier(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := h.Undefine(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := h.DeleteVolume(t.Context(), "ssd", "copy"); err != nil {
		t.Error(err)
	}
}
