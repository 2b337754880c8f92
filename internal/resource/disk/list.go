package disk

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// NewList creates the list of disks.
func NewList() list.ListResource {
	return &providerdata.Lister{
		Resource: providerdata.Resource{TypeName: "disk"}, Find: find,
		Schema: schema.Schema{
			MarkdownDescription: "The volumes of storage pools, also those that others have made, without the images that disks share.",
			Attributes: map[string]schema.Attribute{
				"host": schema.StringAttribute{
					Optional: true, MarkdownDescription: "Key of one of the provider's `hosts`. Defaults to all.",
				},
				"pool": schema.StringAttribute{
					Optional: true, MarkdownDescription: "A storage pool. Defaults to those of the host's usage types.",
					Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				},
				"unmanaged": schema.BoolAttribute{
					Optional: true, MarkdownDescription: "Only volumes that no configuration with this provider has made or imported.",
				},
			},
		},
	}
}

// find are the volumes of pools, by host, pool and name.
func find(ctx context.Context, d *providerdata.Data, config tfsdk.Config, diags *diag.Diagnostics) (all []providerdata.Listed) {
	unmanaged := providerdata.Asked[types.Bool](ctx, config, "unmanaged", diags).ValueBool()
	asked := providerdata.Asked[types.String](ctx, config, "pool", diags).ValueString()
	for _, key := range d.AskedHosts(ctx, config, diags) {
		h, err := d.Hosts.Host(key)
		pools := []string{asked}
		if err == nil && asked == "" {
			pools, err = poolsOf(ctx, d, h)
		}
		for _, pool := range pools {
			var found []providerdata.Listed
			if err == nil {
				found, err = findIn(ctx, d, h, pool, unmanaged)
			}
			all = append(all, found...)
		}
		if err != nil {
			diags.AddWarning("Not all disks of host "+key+" are known", err.Error())
		}
	}
	return all
}

// poolsOf are the pools of the usage types of a host, sorted.
func poolsOf(ctx context.Context, d *providerdata.Data, h *host.Host) (pools []string, err error) {
	all := d.UsageTypes(h.Key)
	places, err := all.Places(ctx)
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if pool, err := all.Existing(ctx, h, name); err == nil { // there may be none yet
			pools = append(pools, pool)
		}
	}
	slices.Sort(pools)
	return slices.Compact(pools), err
}

func findIn(ctx context.Context, d *providerdata.Data, h *host.Host, pool string, unmanaged bool) (all []providerdata.Listed, err error) {
	names, err := h.VolumeNames(ctx, pool)
	slices.Sort(names)
	for _, name := range names {
		if tfvalue.IsReserved(name) {
			continue
		}
		if unmanaged {
			v, err := h.Volume(ctx, pool, name)
			if err != nil {
				continue // such as a folder, or a header that libvirt can't read
			}
			if seen, err := content.See(ctx, h, v, v.Format); err != nil || seen.ID != "" {
				continue
			}
		}
		all = append(all, providerdata.Listed{
			Name: h.Key + "/" + pool + "/" + name, Identity: map[string]string{"host": h.Key, "pool": pool, "name": name},
			Read: readListed(d, h, pool, name),
		})
	}
	return all, err
}

// readListed reads a volume as an import does, but records no identity.
func readListed(d *providerdata.Data, h *host.Host, pool, name string) func(context.Context, *tfsdk.Resource) diag.Diagnostics {
	return func(ctx context.Context, to *tfsdk.Resource) (diags diag.Diagnostics) {
		var m model
		diags.Append(to.SetAttribute(ctx, path.Root("host"), h.Key)...)
		if diags.Append(tfvalue.Get(ctx, to.Schema, to.Raw, &m)...); diags.HasError() {
			return diags
		}
		v, err := h.Volume(ctx, pool, name)
		if err == nil {
			err = content.CheckImport(ctx, h, pool, name)
		}
		var below []volume.Image
		if err == nil {
			v, _, below, err = m.readImported(ctx, h, v, false)
		}
		if err != nil {
			diags.AddWarning("A disk could not be read", fmt.Sprintf("Volume %s in pool %s of host %s: %s", name, pool, h.Key, err))
			return diags
		}
		m.read(ctx, v, "", below, &diags)
		(&disk{providerdata.Resource{Provider: d}}).describeImported(ctx, h, &m, v, below, &diags)
		diags.Append(tfvalue.Set(ctx, to.Schema, &to.Raw, m)...)
		return diags
	}
}
