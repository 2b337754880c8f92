package disk

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A disk that stays in the state is not said to be created again.
func TestOpenElsewhere_Recreated(t *testing.T) {
	m := model{ID: types.StringValue("a/ssd/root"), Pool: types.StringValue("ssd")}
	u := guard.Use{Domain: "web", Host: "a", Live: true, Device: domainxml.Attached{
		Key: "root", Target: "vda", Volume: volume.Volume{Images: []volume.Image{{Type: "file", Name: "/ssd/root", AccessMode: volume.WriteExclusive}}},
	}}
	for folder, want := range map[string]string{"/ssd": "virsh blockcopy web vda", "/elsewhere": "Give the pool its former folder"} {
		for _, recreated := range []bool{true, false} {
			_, text := openElsewhere(u, m, host.Pool{Path: folder}, recreated)
			if strings.Contains(text, "creates the disk again") != recreated || !strings.Contains(text, want) || !strings.HasSuffix(text, ".") {
				t.Errorf("%s, %v: %s", folder, recreated, text)
			}
		}
	}
}
