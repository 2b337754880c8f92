package providerdata

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Part is a part of a resource's identity, in the order of the import id.
type Part struct {
	Name string
	// At is where the state has it.
	At path.Path
	// Optional tells that not all resources of the type have it, and that only those that have it can be imported.
	Optional    bool
	Description string
}

// identified is a resource with an identity, which is copied from the state whatever the resource itself does: a state without an identity,
// of Terraform before 1.12, must have one after any operation.
type identified struct {
	Managed
	parts []Part
}

// AtRoot is a part that the state has as an attribute of that name.
func AtRoot(name, description string) Part {
	return Part{Name: name, At: path.Root(name), Description: description}
}

// OfVolume are the parts of what is a storage volume.
func OfVolume() []Part {
	return []Part{
		AtRoot("host", "Key of the host in the provider's `hosts`."), AtRoot("pool", "Storage pool."), AtRoot("name", "Storage volume."),
	}
}

// WithIdentity gives a resource an identity. What moves to another host gets another one.
func WithIdentity(r Managed, parts ...Part) resource.Resource { return &identified{r, parts} }

func (r *identified) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	r.Managed.Metadata(ctx, req, resp)
	resp.ResourceBehavior.MutableIdentity = true
}

// IdentitySchema has the parts.
func (r *identified) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema.Attributes = map[string]identityschema.Attribute{}
	for _, p := range r.parts {
		resp.IdentitySchema.Attributes[p.Name] = identityschema.StringAttribute{
			RequiredForImport: !p.Optional, OptionalForImport: p.Optional, Description: p.Description,
		}
	}
}

func (r *identified) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.Managed.Create(ctx, req, resp)
	r.identify(ctx, resp.State, resp.Identity, &resp.Diagnostics)
}

func (r *identified) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	r.identify(ctx, req.State, resp.Identity, &resp.Diagnostics) // what is gone has one, too
	r.Managed.Read(ctx, req, resp)
	r.identify(ctx, resp.State, resp.Identity, &resp.Diagnostics)
}

func (r *identified) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.Managed.Update(ctx, req, resp)
	r.identify(ctx, resp.State, resp.Identity, &resp.Diagnostics)
}

// ImportState takes an import id, or an identity, whose parts are one.
func (r *identified) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if req.ID == "" && req.Identity != nil {
		var parts []string
		for _, p := range r.parts {
			var value types.String
			resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root(p.Name), &value)...)
			parts = append(parts, value.ValueString())
		}
		req.ID = strings.Join(parts, "/")
	}
	r.Managed.ImportState(ctx, req, resp)
	r.identify(ctx, resp.State, resp.Identity, &resp.Diagnostics)
}

// identify copies the identity from a state; there is none of a resource that is gone.
func (r *identified) identify(ctx context.Context, from tfsdk.State, to *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	if to == nil || from.Raw.IsNull() {
		return
	}
	for _, p := range r.parts {
		var value types.String
		diags.Append(from.GetAttribute(ctx, p.At, &value)...)
		diags.Append(to.SetAttribute(ctx, path.Root(p.Name), value)...)
	}
}
