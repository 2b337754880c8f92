// Package provider configures virtclaim and registers its resources, data sources and functions.
package provider

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	hostsource "github.com/virtclaim/terraform-provider-virtclaim/internal/datasource/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/datasource/persistentvolumeclaim"
	functions "github.com/virtclaim/terraform-provider-virtclaim/internal/function"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/disk"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/kernel"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/virtualmachine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/volumebinding"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/resource/volumecontent"
)

// Release is what the linker tells the provider.
type Release struct {
	// Version is shown to Terraform.
	Version string
	// VolumeImage is the reference of the release's volume image, the default of kubernetes.volume_image; empty outside of releases.
	VolumeImage string
}

type virtclaim struct{ release Release }

// New returns the constructor of the provider.
func New(release Release) func() provider.Provider {
	return func() provider.Provider { return &virtclaim{release} }
}

func (p *virtclaim) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "virtclaim"
	resp.Version = p.release.Version
}

func (p *virtclaim) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerSchema()
}

func (p *virtclaim) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{volumebinding.New, volumecontent.New, disk.New, kernel.New, virtualmachine.New}
}

func (p *virtclaim) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{persistentvolumeclaim.New, hostsource.New}
}

func (p *virtclaim) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{volumebinding.NewList, disk.NewList, virtualmachine.NewList}
}

func (p *virtclaim) Actions(context.Context) []func() action.Action { return virtualmachine.Actions() }

func (p *virtclaim) Functions(context.Context) []func() function.Function { return functions.All() }

// Configure checks all that can be checked without connecting to a host or cluster.
func (p *virtclaim) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	if !req.Config.Raw.IsFullyKnown() {
		unknown := &providerdata.Data{}
		resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = unknown, unknown, unknown, unknown
		return
	}
	var config model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	hosts := config.hosts(ctx, &resp.Diagnostics)
	client, k := config.cluster(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	b := providerdata.New(config.Owner.ValueString(), hosts, client)
	b.SettleMachine = virtualmachine.Settle(b)
	b.ReservesClaims = client != nil && k.reserves()
	b.VolumeImage = cmp.Or(k.VolumeImage.ValueString(), p.release.VolumeImage)
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = b, b, b, b
}

// hosts are the hosts of the configuration. A URI that libvirt can't connect to is an error of its attribute.
func (m model) hosts(ctx context.Context, diags *diag.Diagnostics) *host.Registry {
	var hosts map[string]hostModel
	diags.Append(m.Hosts.ElementsAs(ctx, &hosts, false)...)
	configs := map[string]host.Config{}
	for key, h := range hosts {
		if err := host.ValidateURI(h.URI.ValueString()); err != nil {
			diags.AddAttributeError(path.Root("hosts").AtMapKey(key).AtName("uri"), "Invalid libvirt URI", err.Error())
		}
		storage := map[string]string{}
		if !h.Storage.IsNull() {
			diags.Append(h.Storage.ElementsAs(ctx, &storage, false)...)
		}
		timeout, _ := time.ParseDuration(h.ConnectTimeout.ValueString()) // validated
		configs[key] = host.Config{
			URI: h.URI.ValueString(), Node: h.KubernetesNode.ValueString(), Storage: storage,
			ConnectTimeout: timeout, Kubelet: h.KubeletRootDir.ValueString(),
			MigrationURI: h.MigrationURI.ValueString(), MigrationAddress: h.MigrationAddress.ValueString(),
		}
	}
	warnOfHosts(hosts, diags)
	return host.NewRegistry(configs)
}

// cluster creates the Kubernetes client, nil when none is configured.
func (m model) cluster(ctx context.Context, diags *diag.Diagnostics) (client *cluster.Client, k kubernetesModel) {
	if m.Kubernetes.IsNull() {
		return nil, k
	}
	if diags.Append(m.Kubernetes.As(ctx, &k, asOptions)...); diags.HasError() {
		return nil, k
	}
	if !k.reserves() {
		diags.AddAttributeWarning(path.Root("kubernetes").AtName("reserve_claims"), "Claims are not reserved",
			"Nothing in the cluster tells others that a virtual machine uses a claim: another configuration may take it, too, and it can "+
				"be deleted. What runs on the hosts of a binding is still looked at.")
	}
	client, err := cluster.New(k.config(ctx, diags))
	if err != nil {
		at := path.Root("kubernetes")
		var blamed *cluster.ConfigError
		if errors.As(err, &blamed) && blamed.Field != "" {
			at = at.AtName(blamed.Field)
		}
		diags.AddAttributeError(at, "Unusable Kubernetes configuration",
			err.Error()+"\n\nIf no claims are used, remove the kubernetes block.")
	} else if client.Unverified {
		warnOfCluster(diags)
	}
	return client, k
}
