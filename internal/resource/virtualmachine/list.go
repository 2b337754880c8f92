package virtualmachine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// NewList creates the list of machines.
func NewList() list.ListResource {
	return &providerdata.Lister{
		Resource: providerdata.Resource{TypeName: "virtual_machine"}, Find: find,
		Schema: schema.Schema{
			MarkdownDescription: "The domains of hosts, also those that others have made.",
			Attributes: map[string]schema.Attribute{
				"host": schema.StringAttribute{
					Optional: true, MarkdownDescription: "Key of one of the provider's `hosts`. Defaults to all.",
				},
				"unmanaged": schema.BoolAttribute{
					Optional: true, MarkdownDescription: "Only domains that no configuration with this provider has made or changed.",
				},
			},
		},
	}
}

// find are the persistent domains of hosts, by name.
func find(ctx context.Context, d *providerdata.Data, config tfsdk.Config, diags *diag.Diagnostics) (all []providerdata.Listed) {
	unmanaged := providerdata.Asked[types.Bool](ctx, config, "unmanaged", diags).ValueBool()
	for _, key := range d.AskedHosts(ctx, config, diags) {
		var domains []domainxml.Definitions
		h, err := d.Hosts.Host(key)
		if err == nil {
			domains, err = guard.List(ctx, h)
		}
		if err != nil {
			diags.AddWarning("The machines of host "+key+" are not known", err.Error())
		}
		slices.SortFunc(domains, func(a, b domainxml.Definitions) int { return cmp.Compare(a.Name, b.Name) })
		for _, is := range domains {
			if err := checkImportedName(key, is.Name); err != nil {
				diags.AddWarning("A machine must be renamed before it is imported", err.Error())
				continue
			}
			if is.Stored == nil || tfvalue.IsReserved(is.Name) || unmanaged && is.Stored.Metadata().Phase != "" {
				continue
			}
			all = append(all, providerdata.Listed{
				Name: key + "/" + is.Name, Identity: map[string]string{"host": key, "uuid": is.UUID}, Read: readListed(d, key, is),
			})
		}
	}
	return all
}

// readListed reads a domain as an import does.
func readListed(d *providerdata.Data, key string, is domainxml.Definitions,
) func(context.Context, *tfsdk.Resource) diag.Diagnostics {
	return func(ctx context.Context, to *tfsdk.Resource) (diags diag.Diagnostics) {
		var m model
		diags.Append(to.SetAttribute(ctx, path.Root("host"), key)...)
		if diags.Append(tfvalue.Get(ctx, to.Schema, to.Raw, &m)...); diags.HasError() {
			return diags
		}
		warnUnsupported(ctx, &diags, key+"/"+is.Name, is.Stored)
		h, err := d.Hosts.Host(key)
		if err == nil {
			mgr := (&virtualMachine{providerdata.Resource{Provider: d}}).manager(h, key)
			machine, at, failed := mgr.Read(ctx, is.UUID, false)
			if err = failed; err == nil {
				m.read(machine, at.IsOn())
			}
		}
		if err != nil {
			diags.AddWarning("A machine could not be read", fmt.Sprintf("Domain %s on host %s: %s", is.Name, key, err))
			return diags
		}
		diags.Append(tfvalue.Set(ctx, to.Schema, &to.Raw, m)...)
		return diags
	}
}
