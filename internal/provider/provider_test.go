package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// maxAttributes limits the attributes of a resource's schema, including nested ones: a schema that mirrors all of libvirt's XML would slow
// down each plan.
const maxAttributes = 220

func TestProvider_SchemasAreValid(t *testing.T) {
	var answer provider.SchemaResponse
	p := New(Release{Version: "test"})()
	p.Schema(t.Context(), provider.SchemaRequest{}, &answer)
	if d := answer.Schema.ValidateImplementation(t.Context()); d.HasError() {
		t.Errorf("provider: %v", d)
	}
	for _, n := range p.Resources(t.Context()) {
		var name resource.MetadataResponse
		n().Metadata(t.Context(), resource.MetadataRequest{ProviderTypeName: "virtclaim"}, &name)
		t.Run(name.TypeName, func(t *testing.T) {
			var answer resource.SchemaResponse
			n().Schema(t.Context(), resource.SchemaRequest{}, &answer)
			if d := answer.Schema.ValidateImplementation(t.Context()); d.HasError() {
				t.Error(d)
			}
		})
	}
}

func TestProvider_NumberOfAttributes(t *testing.T) {
	server := NewServer(Release{Version: "test"})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil || len(schemas.Diagnostics) > 0 {
		t.Fatal(err, schemas.Diagnostics)
	}
	for name, schema := range schemas.ResourceSchemas {
		if n := count(schema.Block.Attributes); n == 0 || n > maxAttributes {
			t.Errorf("%s has %d attributes, which is not between 1 and %d", name, n, maxAttributes)
		}
	}
}

func count(attributes []*tfprotov6.SchemaAttribute) int {
	n := len(attributes)
	for _, a := range attributes {
		if a.NestedType != nil {
			n += count(a.NestedType.Attributes)
		}
	}
	return n
}

func TestProvider_EverythingIsDescribed(t *testing.T) {
	server := NewServer(Release{Version: "test"})
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	describe(t, "provider", schemas.Provider.Block.Attributes)
	for name, schema := range schemas.ResourceSchemas {
		describe(t, name, schema.Block.Attributes)
	}
}

func describe(t *testing.T, at string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	for _, a := range attributes {
		if a.Description == "" && a.Name != "timeouts" {
			t.Errorf("%s.%s has no description", at, a.Name)
		}
		if a.NestedType != nil {
			describe(t, at+"."+a.Name, a.NestedType.Attributes)
		}
	}
}
