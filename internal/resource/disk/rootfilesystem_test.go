package disk

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func TestModel_WarnOfArchitecture(t *testing.T) {
	for _, c := range []struct {
		is   image.RootFS
		want string
	}{
		{image.RootFS{Architecture: "amd64"}, ""},
		{image.RootFS{Architecture: "arm64", Wanted: "amd64"}, "The container image is for arm64, and the host host-a is amd64."},
		{image.RootFS{Architecture: strings.Repeat("x", 1000), Wanted: "amd64"}, "is for " + strings.Repeat("x", 100) + ", and"},
	} {
		var diags diag.Diagnostics
		made(t, nil).warnOfArchitecture(c.is, &diags)
		if diags.HasError() || (diags.WarningsCount() > 0) != (c.want != "") || c.want != "" && !strings.Contains(diags[0].Detail(), c.want) {
			t.Errorf("%.100s: %v", c.is.Architecture, diags)
		}
	}
}
