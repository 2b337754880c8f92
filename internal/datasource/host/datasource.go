// Package host implements the data source virtclaim_host: the properties of a libvirt host, and the free space of its storage.
package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	libvirthost "github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
)

// readTimeout is the default timeout.
const readTimeout = 2 * time.Minute

// unreadable is the summary of errors.
const unreadable = "The host could not be read"

type host struct{ providerdata.DataSource }

var _ datasource.DataSourceWithConfigure = &host{}

// New creates the data source.
func New() datasource.DataSource {
	return &host{providerdata.DataSource{TypeName: "host", Unreadable: unreadable, Unasked: "no host can be asked"}}
}

// Read queries the host.
func (d *host) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	ctx, cancel, ok := d.BeginRead(ctx, req, &m, readTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}
	h, err := d.Provider.Hosts.Host(m.Host.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("host"), "No such host", err.Error()+".")
		return
	}
	about, err := h.About(ctx)
	if err != nil {
		resp.Diagnostics.AddError(unreadable, err.Error())
		return
	}
	m.fill(about)
	processor, err := h.Processor(ctx)
	if err != nil {
		resp.Diagnostics.AddError(unreadable, err.Error())
		return
	}
	m.CPU = showProcessor(processor)
	m.readDevices(ctx, h, &resp.Diagnostics)
	m.UsageTypes = usageTypes(ctx, h, d.Provider.UsageTypes(h.Key), &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	}
}

// pools are the calls to a host that usageTypes needs.
type pools interface {
	Pool(ctx context.Context, name string) (libvirthost.Pool, error)
	PoolOfTarget(ctx context.Context, path string) (string, error)
}

// usageTypes reads the pools of a host's usage types, and creates none. It is nil when the usage types are unknown.
func usageTypes(ctx context.Context, h pools, u content.UsageTypes, diags *diag.Diagnostics) map[string]usageModel {
	places, err := u.Places(ctx)
	if err != nil {
		diags.AddWarning("The usage types of the host are not known", fmt.Sprintf("They are in annotations of the Kubernetes node of "+
			"host %s, which can't be read, so usage_types is null: %s. Permit to get nodes, or give the host a storage map.", u.Host, err))
		return nil
	}
	found := map[string]usageModel{}
	for usageType, place := range places {
		seen, err := readUsage(ctx, h, place)
		if errors.Is(err, libvirthost.ErrNoPool) {
			diags.AddWarning("A storage pool is missing", fmt.Sprintf("Usage type %s of host %s is mapped to the storage pool %s, which "+
				"the host does not have. Define it there, or name another one in the host's storage.", usageType, u.Host, place.Pool))
		} else if err != nil {
			diags.AddError(unreadable, err.Error())
		}
		found[usageType] = seen
	}
	return found
}

// readUsage describes a place. If only a folder is configured, it is the pool that a disk would be created in, or the folder alone.
func readUsage(ctx context.Context, h pools, place content.Place) (usageModel, error) {
	name := place.Pool
	if name == "" {
		var err error
		if name, err = h.PoolOfTarget(ctx, place.Folder); err != nil {
			if errors.Is(err, libvirthost.ErrNotFound) {
				err = nil // the first disk of this usage type creates it
			}
			return usageModel{Path: types.StringValue(place.Folder)}, err
		}
	}
	seen, err := h.Pool(ctx, name)
	return showPool(name, seen), err
}
