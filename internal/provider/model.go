package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
)

var asOptions = basetypes.ObjectAsOptions{}

type model struct {
	Owner      types.String `tfsdk:"owner"`
	Kubernetes types.Object `tfsdk:"kubernetes"`
	Hosts      types.Map    `tfsdk:"hosts"`
}

type hostModel struct {
	URI            types.String `tfsdk:"uri"`
	KubernetesNode types.String `tfsdk:"kubernetes_node"`
	KubeletRootDir types.String `tfsdk:"kubelet_root_dir"`
	Storage        types.Map    `tfsdk:"storage"`
	// ConnectTimeout is a duration; it is validated.
	ConnectTimeout   types.String `tfsdk:"connect_timeout"`
	MigrationURI     types.String `tfsdk:"migration_uri"`
	MigrationAddress types.String `tfsdk:"migration_address"`
}

type kubernetesModel struct {
	ConfigPath            types.String `tfsdk:"config_path"`
	ConfigPaths           types.List   `tfsdk:"config_paths"`
	ConfigContext         types.String `tfsdk:"config_context"`
	ConfigContextAuthInfo types.String `tfsdk:"config_context_auth_info"`
	ConfigContextCluster  types.String `tfsdk:"config_context_cluster"`
	Host                  types.String `tfsdk:"host"`
	Username              types.String `tfsdk:"username"`
	Password              types.String `tfsdk:"password"`
	Token                 types.String `tfsdk:"token"`
	ClientCertificate     types.String `tfsdk:"client_certificate"`
	ClientKey             types.String `tfsdk:"client_key"`
	ClusterCACertificate  types.String `tfsdk:"cluster_ca_certificate"`
	TLSServerName         types.String `tfsdk:"tls_server_name"`
	Insecure              types.Bool   `tfsdk:"insecure"`
	ProxyURL              types.String `tfsdk:"proxy_url"`
	ReserveClaims         types.Bool   `tfsdk:"reserve_claims"`
	VolumeImage           types.String `tfsdk:"volume_image"`
	Exec                  *execModel   `tfsdk:"exec"`
}

type execModel struct {
	APIVersion types.String `tfsdk:"api_version"`
	Command    types.String `tfsdk:"command"`
	Args       types.List   `tfsdk:"args"`
	Env        types.Map    `tfsdk:"env"`
}

func (k kubernetesModel) config(ctx context.Context, diags *diag.Diagnostics) cluster.Config {
	c := cluster.Config{
		ConfigPath:            k.ConfigPath.ValueString(),
		ConfigContext:         k.ConfigContext.ValueString(),
		ConfigContextAuthInfo: k.ConfigContextAuthInfo.ValueString(),
		ConfigContextCluster:  k.ConfigContextCluster.ValueString(),
		Host:                  k.Host.ValueString(),
		Username:              k.Username.ValueString(),
		Password:              k.Password.ValueString(),
		Token:                 k.Token.ValueString(),
		ClientCertificate:     k.ClientCertificate.ValueString(),
		ClientKey:             k.ClientKey.ValueString(),
		ClusterCACertificate:  k.ClusterCACertificate.ValueString(),
		TLSServerName:         k.TLSServerName.ValueString(),
		Insecure:              k.Insecure.ValueBool(),
		ProxyURL:              k.ProxyURL.ValueString(),
	}
	diags.Append(k.ConfigPaths.ElementsAs(ctx, &c.ConfigPaths, false)...)
	if k.Exec != nil {
		c.Exec = &cluster.Exec{APIVersion: k.Exec.APIVersion.ValueString(), Command: k.Exec.Command.ValueString()}
		diags.Append(k.Exec.Args.ElementsAs(ctx, &c.Exec.Args, false)...)
		diags.Append(k.Exec.Env.ElementsAs(ctx, &c.Exec.Env, false)...)
	}
	return c
}

// reserves is whether claims are reserved.
func (k kubernetesModel) reserves() bool {
	return k.ReserveClaims.IsNull() || k.ReserveClaims.ValueBool()
}
