package volumebinding

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A file that a guest may have open is refused with the commands that save it; saved memory can't be rescued, and the error has the command
// that gives it up.
func TestExplainOpenFile(t *testing.T) {
	file := volume.Image{Type: "file", Name: "/data/disk.img", AccessMode: volume.WriteExclusive}
	over := volume.Volume{Images: []volume.Image{{Type: "file", Name: "/pool/over"}, file}}
	has := func(v volume.Volume, readOnly bool) domainxml.Attached {
		return domainxml.Attached{Key: "data", Target: "vda", Volume: v, ReadOnly: readOnly}
	}
	plain := volume.Volume{Images: []volume.Image{file}}
	for name, tt := range map[string]struct {
		use   guard.Use
		image volume.Image
		want  string
	}{
		"running":                   {guard.Use{Domain: "web", Live: true, Device: has(plain, false)}, file, "virsh shutdown web"},
		"saved":                     {guard.Use{Domain: "web", Saved: true, Device: has(plain, false)}, file, "virsh managedsave-remove web"},
		"off":                       {guard.Use{Domain: "web", Stored: true, Device: has(plain, false)}, file, ""},
		"running, and only reading": {guard.Use{Domain: "web", Live: true, Device: has(plain, true)}, file, ""},
		"below an overlay":          {guard.Use{Domain: "web", Live: true, Depth: 1, Device: has(over, false)}, file, "destroy that overlay"},
		"a device":                  {guard.Use{Domain: "web", Live: true, Device: has(plain, false)}, volume.Image{Type: "block", Name: "/dev/a"}, ""},
	} {
		err := explainOpenFile(tt.use, tt.image)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
