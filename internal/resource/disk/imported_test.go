package disk

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
)

func TestDisk_ImportedFormatFromHead(t *testing.T) {
	base := "/pool/" + content.BasePrefix + strings.Repeat("0a", 32)
	container := map[string]any{"container_image": map[string]any{"image": "example.org/image:v1"}}
	for name, c := range map[string]struct {
		children any
		backing  string
		want     string
	}{
		"a container image over what disks share": {container, base, ""},
		"a container image over nothing":          {container, "", "Not made from a container image"},
		"a container image over another disk":     {container, "/pool/other", "Not made from a container image"},
		"a blank disk over nothing":               {nil, "", ""},
		"a blank disk over another":               {nil, "/pool/other", "An overlay without its master"},
		"a file over what disks share":            {map[string]any{"file": someFile}, base, "Made from a container image"},
		"a blank disk over what disks share":      {nil, base, "Made from a container image"},
	} {
		var diags diag.Diagnostics
		made(t, c.children).checkShared(made(t, nil), c.backing, &diags)
		if got := len(diags); c.want == "" && got != 0 || c.want != "" && (got != 1 || diags[0].Summary() != c.want) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
