package backend_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/backend"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A writer and an overlay do not go together, whichever is planned first. Where something exists, a plan only warns of it.
func TestBackend_Wish(t *testing.T) {
	write := volume.Image{Type: "file", Name: "/ssd/golden", AccessMode: volume.WriteExclusive, Hosts: []string{"a"}}
	read := write
	read.AccessMode = volume.ReadShared
	for _, order := range [][]volume.Image{{write, read}, {read, write}} {
		for _, exists := range []bool{false, true} {
			b := backend.New("", nil, nil)
			if exists {
				b.Refreshes()
			}
			var diags diag.Diagnostics
			if !b.Wish("disk a/one", order[0], path.Root("x"), &diags) || !b.Wish("disk a/one", order[1], path.Root("x"), &diags) || len(diags) > 0 {
				t.Errorf("one user of it is refused: %v", diags)
			}
			if b.Wish("machine a/two", order[1], path.Root("x"), &diags) || len(diags) != 1 || diags[0].Summary() != "A master is read-only" {
				t.Errorf("%s, then %s: %v", order[0].AccessMode, order[1].AccessMode, diags)
			}
			if diags.HasError() == exists {
				t.Errorf("something exists: %v, and the plan says %v", exists, diags)
			}
		}
	}
	var diags diag.Diagnostics
	b := backend.New("", nil, nil)
	if !b.Wish("machine a/one", read, path.Root("x"), &diags) || !b.Wish("machine a/two", read, path.Root("x"), &diags) {
		t.Errorf("two overlays are refused: %v", diags)
	}
}
