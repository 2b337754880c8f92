package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
)

// TestProvider_VolumeImage: pods run the release's volume image unless the configuration names another one.
func TestProvider_VolumeImage(t *testing.T) {
	const released, own = "ghcr.io/virtclaim/virtclaim-volume@sha256:00", "registry.example.org/own:1"
	for name, c := range map[string]struct {
		released, configured, want string
	}{
		"release":                            {released: released, want: released},
		"another one":                        {released: released, configured: own, want: own},
		"built from source":                  {},
		"built from source, and another one": {configured: own, want: own},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Release{Version: "test", VolumeImage: c.released})()
			var schema provider.SchemaResponse
			p.Schema(t.Context(), provider.SchemaRequest{}, &schema)
			var resp provider.ConfigureResponse
			p.Configure(t.Context(), provider.ConfigureRequest{Config: configOf(t, schema, c.configured)}, &resp)
			if resp.Diagnostics.HasError() {
				t.Fatal(resp.Diagnostics)
			}
			if got := resp.ResourceData.(*providerdata.Data).VolumeImage; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// configOf is a configuration with a cluster, and with a volume image unless it is empty.
func configOf(t *testing.T, schema provider.SchemaResponse, image string) tfsdk.Config {
	t.Helper()
	all := schema.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
	kubernetes := all.AttributeTypes["kubernetes"].(tftypes.Object)
	values := nulls(kubernetes)
	values["host"] = tftypes.NewValue(tftypes.String, "https://127.0.0.1:6443")
	if image != "" {
		values["volume_image"] = tftypes.NewValue(tftypes.String, image)
	}
	config := nulls(all)
	config["kubernetes"] = tftypes.NewValue(kubernetes, values)
	return tfsdk.Config{Schema: schema.Schema, Raw: tftypes.NewValue(all, config)}
}

func nulls(object tftypes.Object) map[string]tftypes.Value {
	values := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		values[name] = tftypes.NewValue(kind, nil)
	}
	return values
}
