package volumebinding

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// dynamicSource is the attribute of a source that is made on demand.
const dynamicSource = "dynamic"

func dynamicAttribute() schema.SingleNestedAttribute {
	return object("A volume that is made for the binding, and removed with it, data included, when the binding is destroyed. It is made "+
		"by a pod that the provider runs (`container`), or by a server (`server`); [the guide](../guides/dynamic-volumes.md) has their "+
		"protocol. Requires the provider's `owner`. Where the volume is, is known after the apply.", map[string]schema.Attribute{
		"parameters": textMap("What the volume is to be, such as `size = \"10Gi\"`; sent with the request. A greater `size` has the " +
			"volume grow in place, a smaller one is refused; other changes force a new resource."),
		"container": containerAttribute(),
		"server": object("A server that makes volumes.", map[string]schema.Attribute{
			"url": tfvalue.Required("URL of the requests, such as `https://volumes.example.com/volume`. Another one is asked " +
				"for the same volume, and makes none."),
			"ca_certificate": tfvalue.Optional("Certificates of the authorities that sign the server's certificate, PEM; those that " +
				"this machine trusts if absent."),
			"secret_ref": tfvalue.SecretRefAttribute("A Kubernetes Secret with the bearer token under the key `token`, or a client " +
				"certificate under `tls.crt` and `tls.key`, or both. It is read for each request, also for that of a destroy."),
			"namespace": schema.StringAttribute{
				Optional: true, Validators: tfvalue.ObjectName(),
				MarkdownDescription: "Namespace of the claims and Secrets that the server's answer may name. Without it, the answer must " +
					"not name any.",
			},
		}),
	})
}

type dynamicModel struct {
	Parameters types.Map    `tfsdk:"parameters"`
	Container  types.Object `tfsdk:"container"`
	Server     types.Object `tfsdk:"server"`
}

type serverModel struct {
	URL           types.String `tfsdk:"url"`
	CACertificate types.String `tfsdk:"ca_certificate"`
	SecretRef     types.Object `tfsdk:"secret_ref"`
	Namespace     types.String `tfsdk:"namespace"`
}

// dynamic is the dynamic source, or nil.
func (m model) dynamic(ctx context.Context, diags *diag.Diagnostics) *dynamicModel {
	return child[dynamicModel](ctx, m, dynamicSource, diags)
}

// container is the container, or nil.
func (d dynamicModel) container(ctx context.Context, diags *diag.Diagnostics) *containerModel {
	return objectAs[containerModel](ctx, d.Container, diags)
}

func (d dynamicModel) server(ctx context.Context, diags *diag.Diagnostics) *serverModel {
	return objectAs[serverModel](ctx, d.Server, diags)
}

// isOther is whether a source is known to make another volume.
func (d dynamicModel) isOther(ctx context.Context, was dynamicModel) bool {
	if d.Container.IsNull() != was.Container.IsNull() && !d.Container.IsUnknown() {
		return true
	}
	is, before := d.Container.Attributes(), was.Container.Attributes()
	for _, name := range []string{"namespace", "image"} {
		if !d.Container.IsUnknown() && surelyDiffers(ctx, before[name], is[name]) {
			return true
		}
	}
	_, sameButSize := d.grows(was)
	return surelyDiffers(ctx, was.Parameters, d.Parameters) && !sameButSize
}

// grows is by how many bytes the size is larger; ok is false unless it is all that differs in the parameters.
func (d dynamicModel) grows(was dynamicModel) (by int64, ok bool) {
	is, before := d.Parameters.Elements(), was.Parameters.Elements()
	size, err := sizeIn(is)
	sizeBefore, wrong := sizeIn(before)
	delete(is, "size")
	delete(before, "size")
	return size - sizeBefore, err == nil && wrong == nil && maps.EqualFunc(is, before, attr.Value.Equal)
}

func sizeIn(parameters map[string]attr.Value) (int64, error) {
	text, _ := parameters["size"].(types.String)
	return tfvalue.NewQuantity(text.ValueString()).Bytes()
}

// checkShrinking says that a size is smaller, and all that differs: a plan warns, because an error would prevent a destroy, too.
func (d dynamicModel) checkShrinking(was dynamicModel, add func(at path.Path, summary, detail string)) {
	if by, ok := d.grows(was); !ok || by >= 0 {
		return
	}
	add(sourcePath.AtName(dynamicSource).AtName("parameters"), "A volume does not shrink", fmt.Sprintf("The volume has the size %s, and "+
		"%s is asked for: its data would be cut, so no apply does it. Set the former size, or make an empty volume, which loses all "+
		"data: terraform apply -replace=<address of this resource>.", was.Parameters.Elements()["size"], d.Parameters.Elements()["size"]))
}

// surelyDiffers is differs for values that may be unknown in part.
func surelyDiffers(ctx context.Context, was, is attr.Value) bool {
	if was == nil || is == nil {
		return was != is
	}
	raw, err := is.ToTerraformValue(ctx)
	return err == nil && raw.IsFullyKnown() && !is.Equal(was)
}

// validate checks what is known of a source.
func (d dynamicModel) validate(ctx context.Context, diags *diag.Diagnostics) error {
	if c := d.container(ctx, diags); c != nil {
		_, err := c.template(ctx, diags)
		return err
	}
	s := d.server(ctx, diags)
	if s == nil {
		return nil
	}
	if err := dynamic.CheckURL(s.URL.ValueString()); err != nil {
		return source.Errorf("server", "url: %w", err)
	}
	if !s.SecretRef.IsNull() && !dynamic.IsEncrypted(s.URL.ValueString()) {
		return source.Errorf("server", "secret_ref: the token would be readable on the network: use an https URL")
	}
	return nil
}
