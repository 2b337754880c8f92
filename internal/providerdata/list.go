package providerdata

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Listed is what a list of resources has found.
type Listed struct {
	// Name is shown to users; it is the import id.
	Name string
	// Identity are the values of the parts of the resource's identity.
	Identity map[string]string
	// Read writes the resource as an import has it.
	Read func(ctx context.Context, to *tfsdk.Resource) diag.Diagnostics
}

// Lister lists the resources of a type, for terraform query.
type Lister struct {
	Resource
	// Schema is that of the configuration.
	Schema schema.Schema
	// Find finds what can be imported. Errors of a single host are warnings.
	Find func(ctx context.Context, d *Data, config tfsdk.Config, diags *diag.Diagnostics) []Listed
}

// ListResourceConfigSchema is the schema of the configuration.
func (l *Lister) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = l.Schema
}

// List finds the resources, and reads them as they are asked for.
func (l *Lister) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	if !l.Provider.Ready() {
		diags.AddError("Nothing could be listed", "The provider's configuration is not known yet.")
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	found := l.Find(ctx, l.Provider, req.Config, &diags)
	stream.Results = func(push func(list.ListResult) bool) {
		if len(diags) > 0 && !push(list.ListResult{Diagnostics: diags}) {
			return
		}
		for n, of := range found {
			if req.Limit > 0 && int64(n) == req.Limit || !push(of.result(ctx, req)) {
				return
			}
		}
	}
}

func (f Listed) result(ctx context.Context, req list.ListRequest) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = f.Name
	for name, value := range f.Identity {
		result.Diagnostics.Append(result.Identity.SetAttribute(ctx, path.Root(name), value)...)
	}
	if req.IncludeResource {
		result.Diagnostics.Append(f.Read(ctx, result.Resource)...)
	}
	return result
}

// Asked are the attributes of a list's configuration.
func Asked[T any](ctx context.Context, config tfsdk.Config, name string, diags *diag.Diagnostics) (value T) {
	diags.Append(config.GetAttribute(ctx, path.Root(name), &value)...)
	return value
}

// AskedHosts are the keys of the hosts of a list: the configured one, or all.
func (d *Data) AskedHosts(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) []string {
	key := Asked[types.String](ctx, config, "host", diags)
	if key.IsNull() {
		return d.Hosts.Keys()
	}
	if !slices.Contains(d.Hosts.Keys(), key.ValueString()) {
		_, err := d.Hosts.Host(key.ValueString())
		diags.AddAttributeError(path.Root("host"), "Unknown host", err.Error())
		return nil
	}
	return []string{key.ValueString()}
}
