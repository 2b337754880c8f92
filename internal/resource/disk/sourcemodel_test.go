package disk

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// unknown represents an unknown value.
type unknown struct{}

// value is a value of that type: strings, and objects of these; attributes that are not named are null.
func value(t *testing.T, of attr.Type, from any) attr.Value {
	t.Helper()
	ctx := context.Background()
	var v attr.Value
	var err error
	switch from := from.(type) {
	case nil:
		v, err = of.ValueFromTerraform(ctx, tftypes.NewValue(of.TerraformType(ctx), nil))
	case unknown:
		v, err = of.ValueFromTerraform(ctx, tftypes.NewValue(of.TerraformType(ctx), tftypes.UnknownValue))
	case attr.Value:
		return from
	case string:
		return types.StringValue(from)
	case map[string]any:
		fields := map[string]attr.Value{}
		typed := of.(attr.TypeWithAttributeTypes).AttributeTypes()
		for name := range from {
			if typed[name] == nil {
				t.Fatalf("%s is no attribute", name)
			}
		}
		for name, field := range typed {
			fields[name] = value(t, field, from[name])
		}
		return types.ObjectValueMust(typed, fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// source is a source with the given children.
func source(t *testing.T, children any) types.Object {
	t.Helper()
	return value(t, sourceAttribute().GetType(), children).(types.Object)
}

// made is a disk in state that was created from a source.
func made(t *testing.T, children any) model {
	t.Helper()
	return model{
		Host: types.StringValue("host-a"), Name: types.StringValue("root"), UsageType: types.StringValue("fast"),
		Format: types.StringValue("qcow2"), Source: source(t, children), ID: types.StringValue("host-a/ssd/root"),
	}
}

// ok fails the test when there is a diagnostic.
func ok(t *testing.T, diags diag.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		t.Errorf("%s: %s", d.Summary(), d.Detail())
	}
}

var (
	someURL  = map[string]any{"url": "https://example.org/image"}
	someFile = map[string]any{"path": "/image"}
)

func TestSource_KindIsItsOnlyChild(t *testing.T) {
	for name, c := range map[string]struct {
		children  any
		kind      string
		undecided bool
	}{
		"none":                          {nil, "", false},
		"unknown":                       {unknown{}, "", true},
		"one":                           {map[string]any{"url": someURL}, fromURL, false},
		"one that is unknown":           {map[string]any{"url": unknown{}}, fromURL, false},
		"two that are unknown":          {map[string]any{"url": unknown{}, "file": unknown{}}, "", true},
		"an unknown one beside another": {map[string]any{"url": someURL, "file": unknown{}}, "", true},
	} {
		m := made(t, c.children)
		for range 20 { // maps have no order
			if m.kind() != c.kind || m.isUndecided() != c.undecided {
				t.Fatalf("%s: kind %q, undecided %v", name, m.kind(), m.isUndecided())
			}
		}
	}
}

// A source of an unknown kind replaces nothing, and leaves the attributes that depend on it unknown.
func TestSource_Unknown(t *testing.T) {
	ctx := context.Background()
	for name, children := range map[string]any{
		"all of it": unknown{}, "which child": map[string]any{"url": unknown{}, "file": unknown{}},
		"whether another child": map[string]any{"url": unknown{}, "file": someFile},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			for _, was := range []any{nil, map[string]any{"url": someURL}, map[string]any{"file": someFile}} {
				plan, state := made(t, children), made(t, was)
				if paths := plan.otherDisk(ctx, state, &diags); len(paths) != 0 {
					t.Errorf("%v replaces a disk from %v", paths, was)
				}
			}
			plan := made(t, children)
			plan.Format = types.StringUnknown()
			plan.planFormat()
			plan.planNew(ctx, &diags)
			if !plan.Format.IsUnknown() || !plan.Volume.IsUnknown() || !plan.sourceVolume().IsUnknown() || plan.hasNoVolume() {
				t.Errorf("planned as format %s, volume %s over %s", plan.Format, plan.Volume, plan.sourceVolume())
			}
			if digest := (&disk{}).planDigest(ctx, plan, &diags); !digest.IsUnknown() {
				t.Errorf("planned as digest %s", digest)
			}
			plan.checkSource(ctx, &diags)
			plan.checkCopy(&diags)
			ok(t, diags)
		})
	}
}

func TestSource_UnknownSeed(t *testing.T) {
	own := func() volume.Volume { return volume.Volume{Images: []volume.Image{{AccessMode: volume.ReadShared}}} }
	for name, c := range map[string]struct {
		children any
		want     volume.AccessMode
	}{
		"a seed":            {map[string]any{"cloud_init": unknown{}}, volume.ReadShared},
		"files":             {map[string]any{"files": unknown{}}, volume.ReadShared},
		"ignition":          {map[string]any{"ignition": unknown{}}, volume.ReadShared},
		"unknown":           {unknown{}, volume.ReadShared},
		"one of two":        {map[string]any{"cloud_init": unknown{}, "file": unknown{}}, volume.ReadShared},
		"an image, adopted": {map[string]any{"file": someFile}, volume.WriteExclusive},
	} {
		if got := made(t, c.children).asConfigured(own()).Images[0].AccessMode; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestSource_FormatWhenKnown(t *testing.T) {
	for name, c := range map[string]struct {
		children any
		want     types.String
	}{
		"blank":           {nil, types.StringValue("qcow2")},
		"volume":          {map[string]any{"volume": unknown{}}, types.StringValue("qcow2")},
		"container image": {map[string]any{"container_image": unknown{}}, types.StringValue("qcow2")},
		"seed":            {map[string]any{"cloud_init": unknown{}}, types.StringValue("raw")},
		"files":           {map[string]any{"files": unknown{}}, types.StringValue("raw")},
		"ignition":        {map[string]any{"ignition": unknown{}}, types.StringValue("raw")},
		"url":             {map[string]any{"url": someURL}, types.StringUnknown()},
		"file":            {map[string]any{"file": someFile}, types.StringUnknown()},
	} {
		plan := made(t, c.children)
		plan.Format = types.StringUnknown()
		if plan.planFormat(); !plan.Format.Equal(c.want) {
			t.Errorf("%s: planned as %s", name, plan.Format)
		}
	}
}

// A guest ignores such data in silence. They may be secret, and are not known in each plan.
func TestSource_SuspiciousSeedIsWarnedOf(t *testing.T) {
	for name, c := range map[string]struct {
		seed map[string]any
		want int
	}{
		"right":         {map[string]any{"user_data": "#cloud-config\n", "network_data": "version: 2\n"}, 0},
		"unknown":       {map[string]any{"user_data": unknown{}, "network_data": unknown{}}, 0},
		"from a secret": {map[string]any{"meta_data": "x"}, 0},
		"user data":     {map[string]any{"user_data": "# cloud-config\npassword: hunter2\n"}, 1},
		"write-only":    {map[string]any{"user_data_wo": "password: hunter2\n", "network_data_wo": "a:\n\tb: hunter2\n"}, 2},
		"network data":  {map[string]any{"network_data": "a:\n\tb: hunter2\n"}, 1},
		"base64":        {map[string]any{"user_data": "I2Nsb3VkLWNvbmZpZwo="}, 0},
	} {
		var diags diag.Diagnostics
		made(t, map[string]any{"cloud_init": c.seed}).checkSource(t.Context(), &diags)
		if len(diags.Warnings()) != c.want || diags.HasError() != (name == "base64") {
			t.Errorf("%s: %v", name, diags)
		}
		for _, d := range diags {
			if strings.Contains(d.Summary()+d.Detail(), "hunter2") {
				t.Errorf("%s: %s", name, d.Detail())
			}
		}
	}
}
