package providerdata_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A writer and an overlay are not compatible, whichever is planned first.
func TestData_RecordPlannedUse(t *testing.T) {
	write := volume.Image{Type: "file", Name: "/ssd/golden", AccessMode: volume.WriteExclusive, Hosts: []string{"a"}}
	read := write
	read.AccessMode = volume.ReadShared
	for _, order := range [][]volume.Image{{write, read}, {read, write}} {
		b := providerdata.New("", nil, nil)
		var diags diag.Diagnostics
		if !b.RecordPlannedUse(providerdata.PlannedUse{By: "disk a/one", Image: order[0]}, path.Root("x"), &diags) || !b.RecordPlannedUse(providerdata.PlannedUse{By: "disk a/one", Image: order[1]}, path.Root("x"), &diags) || len(diags) > 0 {
			t.Errorf("one user of it is refused: %v", diags)
		}
		if b.RecordPlannedUse(providerdata.PlannedUse{By: "machine a/two", Image: order[1]}, path.Root("x"), &diags) || len(diags) != 1 || diags[0].Summary() != "A master is read-only" {
			t.Errorf("%s, then %s: %v", order[0].AccessMode, order[1].AccessMode, diags)
		}
	}
	var diags diag.Diagnostics
	b := providerdata.New("", nil, nil)
	if !b.RecordPlannedUse(providerdata.PlannedUse{By: "machine a/one", Image: read}, path.Root("x"), &diags) || !b.RecordPlannedUse(providerdata.PlannedUse{By: "machine a/two", Image: read}, path.Root("x"), &diags) {
		t.Errorf("two overlays are refused: %v", diags)
	}
}

// A conflict over storage that is yet to be bound is an error of the plan, also after another resource was read. Over storage that exists,
// which is read before its users are planned, it is a warning, because the plan may be that of a destroy. An apply reads nothing.
func TestData_RecordPlannedUse_ErrorUntilStorageExists(t *testing.T) {
	unbound := volume.Image{Type: "block", Name: "/dev/disk/by-id/data", AccessMode: volume.WriteExclusive, Hosts: []string{"a"}}
	bound, disk := unbound, unbound
	bound.Binding, disk.Generation = "b/1/ns/claim", "g"
	for name, c := range map[string]struct {
		one, two volume.Image
		fails    bool
	}{
		"to be bound":             {unbound, unbound, true},
		"bound":                   {bound, bound, false},
		"a disk":                  {disk, disk, false},
		"bound by one of the two": {bound, unbound, false},
	} {
		for _, order := range [][]volume.Image{{c.one, c.two}, {c.two, c.one}} {
			for _, read := range []bool{false, true} {
				b, diags := providerdata.New("", nil, nil), diag.Diagnostics{}
				if read {
					b.Refreshes()
				}
				b.RecordPlannedUse(providerdata.PlannedUse{By: "machine a/one", Image: order[0]}, path.Root("x"), &diags)
				b.RecordPlannedUse(providerdata.PlannedUse{By: "machine a/two", Image: order[1]}, path.Root("x"), &diags)
				if len(diags) != 1 || diags.HasError() != (c.fails || !read) {
					t.Errorf("%s (a resource was read: %v): %v", name, read, diags)
				}
			}
		}
	}
}

// No machine may write to a bound image below an overlay, also on network storage, where no other check finds it. One machine may use the
// overlay.
func TestData_RecordPlannedUse_OverlayOfExclusive(t *testing.T) {
	bound := volume.Image{
		Type: "network", Protocol: "iscsi", Name: "iqn.2001-04.com.example:disk/1", AccessMode: volume.WriteExclusive, Binding: "b/1/ns/claim", Hosts: []string{"a"},
	}
	over := providerdata.PlannedUse{By: "disk a/over", Image: bound, Depth: 1, Disk: true}
	other := providerdata.PlannedUse{By: "disk a/other", Image: bound, Depth: 1, Disk: true}
	on := providerdata.PlannedUse{By: "machine a/on", Image: bound, Depth: 1}
	beside := providerdata.PlannedUse{By: "machine a/beside", Image: bound, Depth: 1}
	writer := providerdata.PlannedUse{By: "machine a/writer", Image: bound}
	reader := providerdata.PlannedUse{By: "machine a/reader", Image: bound, Reads: true}
	for name, c := range map[string]struct {
		plannedUses []providerdata.PlannedUse
		want        string
	}{
		"two overlays and a machine on one":     {[]providerdata.PlannedUse{over, other, on}, ""},
		"two machines on overlays":              {[]providerdata.PlannedUse{over, on, other, beside}, "Two machines on the same storage"},
		"two machines that write":               {[]providerdata.PlannedUse{writer, {By: "machine a/second", Image: bound}}, "Two machines on the same storage"},
		"a machine that writes":                 {[]providerdata.PlannedUse{over, writer}, "A master is read-only"},
		"a machine that writes, planned before": {[]providerdata.PlannedUse{writer, over}, "A master is read-only"},
		"a machine that reads":                  {[]providerdata.PlannedUse{over, reader}, ""},
		"a machine that writes, and no overlay": {[]providerdata.PlannedUse{writer}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, diags := providerdata.New("", nil, nil), diag.Diagnostics{}
			b.Refreshes()
			for _, w := range c.plannedUses {
				b.RecordPlannedUse(w, path.Root("x"), &diags)
			}
			if len(diags) > 1 || len(diags) == 1 != (c.want != "") || len(diags) == 1 && diags[0].Summary() != c.want {
				t.Errorf("got %v, want %q", diags, c.want)
			}
			// Machines that have copies are not to be given copies.
			haveCopies, toCopy := name == "two machines on overlays", "a copy of its own"
			if c.want == "Two machines on the same storage" && strings.Contains(diags[0].Detail(), toCopy) == haveCopies {
				t.Errorf("the advice is %q", diags[0].Detail())
			}
		})
	}
}
