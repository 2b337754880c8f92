package volumebinding

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// NewList creates the list of bindings.
func NewList() list.ListResource {
	return &providerdata.Lister{
		Resource: providerdata.Resource{TypeName: "volume_binding"}, Find: find,
		Schema: schema.Schema{
			MarkdownDescription: "The bindings of claims that are reserved for the provider's `owner`, or for any owner without one.",
			Attributes: map[string]schema.Attribute{
				"namespace": schema.StringAttribute{Required: true, MarkdownDescription: "Namespace of the claims."},
			},
		},
	}
}

// find are the bindings in the reservations of a namespace, by claim.
func find(ctx context.Context, d *providerdata.Data, config tfsdk.Config, diags *diag.Diagnostics) (all []providerdata.Listed) {
	namespace := providerdata.Asked[types.String](ctx, config, "namespace", diags).ValueString()
	var claims map[string]*corev1.PersistentVolumeClaim
	client, err := d.Cluster()
	if err == nil {
		claims, err = client.Claims(ctx, namespace)
	}
	if err != nil {
		diags.AddError("The claims are not known", err.Error())
	}
	for _, claim := range slices.Sorted(maps.Keys(claims)) {
		for _, record := range reservation.Look(claims[claim]) {
			if record.Unreadable == nil && (d.Owner == "" || d.Owner == record.Owner) {
				all = append(all, providerdata.Listed{
					Name:     namespace + "/" + claim + "/" + record.Name,
					Identity: map[string]string{"namespace": namespace, "claim_name": claim, "name": record.Name},
					Read:     readListed(d, namespace, claim, record),
				})
			}
		}
	}
	return all
}

// readListed reads a binding as an import does.
func readListed(d *providerdata.Data, namespace, claim string, record reservation.Record,
) func(context.Context, *tfsdk.Resource) diag.Diagnostics {
	return func(ctx context.Context, to *tfsdk.Resource) (diags diag.Diagnostics) {
		var m model
		for at, value := range map[string]string{"namespace": namespace, "claim_name": claim} {
			diags.Append(to.SetAttribute(ctx, sourcePath.AtName(claimSource).AtName(at), value)...)
		}
		for at, value := range map[string]string{"id": record.ID, "name": record.Name, "access_mode": string(record.Mode)} {
			diags.Append(to.SetAttribute(ctx, path.Root(at), value)...)
		}
		if diags.Append(tfvalue.Get(ctx, to.Schema, to.Raw, &m)...); diags.HasError() {
			return diags
		}
		r, own := &binding{providerdata.Resource{Provider: d}}, privateStateOf(record)
		own.Imported, own.Everywhere = true, true
		r.fillHosts(ctx, &m, own, &diags)
		r.fillVolume(ctx, &m, &own, &diags)
		diags.Append(tfvalue.Set(ctx, to.Schema, &to.Raw, m)...)
		return diags
	}
}
