package disk

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
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
