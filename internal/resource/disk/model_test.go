package disk

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A guest may write any header to its raw disk, which libvirt then reports.
func TestModel_RawSizeIsFileSize(t *testing.T) {
	const file = 64 << 20
	for name, c := range map[string]struct {
		format string
		is     host.StorageVolume
	}{
		"raw":                              {"raw", host.StorageVolume{Format: "raw", Capacity: file, Physical: file}},
		"raw with a head that says more":   {"raw", host.StorageVolume{Format: "qcow2", Capacity: 1 << 40, Physical: file}},
		"raw with a head that says less":   {"raw", host.StorageVolume{Format: "iso", Capacity: 1 << 10, Physical: file}},
		"raw of which the file is unknown": {"raw", host.StorageVolume{Format: "raw", Capacity: file}},
		"qcow2":                            {"qcow2", host.StorageVolume{Format: "qcow2", Capacity: file, Physical: 200 << 10}},
	} {
		var diags diag.Diagnostics
		m := made(t, nil)
		c.is.Pool, c.is.Name, c.is.Path = "ssd", "root", "/ssd/root"
		m.Volume = types.ObjectNull(tfvalue.VolumeTypes)
		is := c.is
		is.Format = c.format
		m.read(context.Background(), is, "", nil, &diags) // as it was created
		m.read(context.Background(), c.is, "", nil, &diags)
		v, known := m.made(context.Background(), &diags)
		if !known || *v.Capacity != file || v.Images[0].Format != c.format {
			t.Errorf("%s: %s", name, m.Volume)
		}
		ok(t, diags)
	}
}

// A usage type that was renamed has the same storage pool, in which the disk stays.
func TestDisk_RenamedUsageType(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		usageType, pool string
		want            string
	}{
		"renamed":                          {"quick", "ssd", "[]"},
		"another pool":                     {"slow", "ssd", "[usage_type]"},
		"renamed after its pool was moved": {"quick", "nvme", "[usage_type]"},
	} {
		var diags diag.Diagnostics
		hosts := host.NewRegistry(map[string]host.Config{"host-a": {URI: "qemu:///system", Storage: map[string]string{"quick": "ssd", "slow": "hdd"}}})
		r := &disk{Resource: providerdata.Resource{Provider: providerdata.New("", hosts, nil)}}
		plan, state := made(t, nil), made(t, nil)
		plan.UsageType, state.Pool = types.StringValue(c.usageType), types.StringValue(c.pool)
		if got := fmt.Sprint(r.replacedBy(ctx, plan, state, &diags)); got != c.want {
			t.Errorf("%s: %s replaces it, want %s", name, got, c.want)
		}
		r.Provider.Known = false
		if got := r.replacedBy(ctx, plan, state, &diags); len(got) > 0 {
			t.Errorf("%s: an unknown provider replaces it by %s", name, got)
		}
		ok(t, diags)
	}
}

// A root file system has one size, which is known before anything is downloaded.
func TestModel_CheckSizeOfRootFilesystem(t *testing.T) {
	root := map[string]any{fromRoot: map[string]any{"image": "a.example/b:1"}}
	for name, c := range map[string]struct {
		source any
		size   tfvalue.Quantity
		bad    bool
	}{
		"less":          {root, tfvalue.QuantityOfBytes(16<<30 - 4096), true},
		"as much":       {root, tfvalue.QuantityOfBytes(16 << 30), false},
		"more":          {root, tfvalue.QuantityOfBytes(20 << 30), false},
		"none":          {root, tfvalue.Quantity{}, false},
		"another image": {map[string]any{fromContainer: root[fromRoot]}, tfvalue.QuantityOfBytes(1 << 30), false},
	} {
		var diags diag.Diagnostics
		m := made(t, c.source)
		m.Size = c.size
		if m.checkSize(t.Context(), &diags); diags.HasError() != c.bad {
			t.Errorf("%s: %v", name, diags)
		}
		for _, d := range diags {
			if at, ok := d.(diag.DiagnosticWithPath); !ok || at.Path().String() != "size" || !strings.Contains(d.Detail(), "has 16Gi") {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
}

func TestSharedBases(t *testing.T) {
	low, high := "virtclaim-base-"+strings.Repeat("0", 64), "virtclaim-base-"+strings.Repeat("1", 64)
	for name, c := range map[string]struct {
		below []string
		want  string
	}{
		"blank":                  {nil, "[]"},
		"layers":                 {[]string{"/ssd/" + high, "/ssd/" + low}, fmt.Sprint([]string{low, high})},
		"over a disk with these": {[]string{"/ssd/golden", "/ssd/" + high, "/ssd/" + low}, "[]"},
	} {
		own := volume.Volume{Images: []volume.Image{{Name: "/ssd/root"}}}
		for _, path := range c.below {
			own.Images = append(own.Images, volume.Image{Name: path})
		}
		if got := fmt.Sprint(sharedBases(own)); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Storage with sectors of 4 KiB refuses raw disks of another length. A size that was rounded is no drift.
func TestModel_SizeInLargeSectors(t *testing.T) {
	for size, want := range map[string]int64{"1025Ki": 1028 << 10, "10G": 10_000_003_072, "64Mi": 64 << 20} {
		var diags diag.Diagnostics
		m := made(t, nil)
		m.Format, m.Size = types.StringValue("raw"), tfvalue.NewQuantity(size)
		if got := m.spec(t.Context(), "ssd", &diags).Capacity; got != want {
			t.Errorf("%s: the disk is to have %d bytes, and not %d", size, got, want)
		}
		m.read(t.Context(), host.StorageVolume{Name: "root", Pool: "ssd", Format: "raw", Capacity: want, Physical: want}, "", nil, &diags)
		if m.Size.ValueString() != size {
			t.Errorf("%s has become %s", size, m.Size.ValueString())
		}
	}
}
