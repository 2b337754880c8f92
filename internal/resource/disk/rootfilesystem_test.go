package disk

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
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

func TestModel_LogLayers(t *testing.T) {
	var log bytes.Buffer
	ctx := tflogtest.RootLogger(t.Context(), &log)
	layers := make([]image.RootLayer, 3)
	opened := 0
	for n := range layers {
		layers[n].Open = func(context.Context) (io.ReadCloser, error) {
			opened += n
			return io.NopCloser(strings.NewReader("")), nil
		}
	}
	layers[0].Image = "a.example/b:1"
	spec := content.Spec{Layers: layers}
	made(t, nil).logLayers(ctx, &spec)
	for _, l := range layers[1:] { // the lowest one is there
		if _, err := l.Open(ctx); err != nil {
			t.Error(err)
		}
	}
	spec.Skipped(7)
	lines, err := tflogtest.MultilineJSONDecode(&log)
	if err != nil || opened != 3 || len(lines) != 3 || lines[0]["layer"] != 2.0 || lines[1]["layer"] != 3.0 || lines[1]["of_layers"] != 3.0 ||
		lines[1]["disk"] != "root" || lines[1]["@level"] != "info" ||
		lines[2]["entries"] != 7.0 || lines[2]["image"] != "a.example/b:1" {
		t.Errorf("%v, and the log has %v", err, lines)
	}
}

// The configuration of an image is read once, when an imported disk is adopted.
func TestModel_PlanConfiguration(t *testing.T) {
	root := map[string]any{fromRoot: map[string]any{"image": "a.example/b:1"}}
	has := configurationOf(image.RootFS{Architecture: "amd64"})
	null, unknown := types.ObjectNull(tfvalue.ImageConfigurationTypes), types.ObjectUnknown(tfvalue.ImageConfigurationTypes)
	undecided := made(t, nil)
	undecided.Source = types.ObjectUnknown(undecided.Source.AttributeTypes(t.Context()))
	for name, c := range map[string]struct {
		plan       model
		isImported bool
		was, want  types.Object
	}{
		"imported":                {made(t, root), true, null, unknown},
		"imported, and undecided": {undecided, true, null, unknown},
		"imported, but blank":     {made(t, nil), true, null, null},
		"imported, and known":     {made(t, root), true, has, has},
		"created":                 {made(t, root), false, has, has},
		"adopted without it":      {made(t, root), false, null, null},
	} {
		state := made(t, root)
		state.ImageConfiguration = c.was
		if c.isImported {
			state.Imported = &imported{}
		}
		if got := c.plan.planConfiguration(state); !got.Equal(c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
