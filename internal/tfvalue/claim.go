package tfvalue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
)

// Claim has the attributes that bindings and the data source have in common: the name of a PersistentVolumeClaim, and how to read it.
type Claim struct {
	Namespace     types.String `tfsdk:"namespace"`
	ClaimName     types.String `tfsdk:"claim_name"`
	ForceBlock    types.Bool   `tfsdk:"force_block"`
	MountPath     types.String `tfsdk:"mount_path"`
	DevicePath    types.String `tfsdk:"device_path"`
	Monitors      types.List   `tfsdk:"monitors"`
	CephConfigMap types.Object `tfsdk:"ceph_config_map"`
}

type configMap struct {
	Namespace types.String `tfsdk:"namespace"`
	Name      types.String `tfsdk:"name"`
	Key       types.String `tfsdk:"key"`
}

// Ref returns the name of the claim.
func (c Claim) Ref() claim.Ref {
	return claim.Ref{Namespace: c.Namespace.ValueString(), Name: c.ClaimName.ValueString()}
}

// Options returns the options of the claim beside its name.
func (c Claim) Options(ctx context.Context, diags *diag.Diagnostics) claim.Options {
	o := claim.Options{
		ForceBlock: c.ForceBlock.ValueBool(), MountPath: c.MountPath.ValueString(), DevicePath: c.DevicePath.ValueString(),
	}
	if !c.Monitors.IsNull() && !c.Monitors.IsUnknown() {
		diags.Append(c.Monitors.ElementsAs(ctx, &o.Monitors, false)...)
	}
	if !c.CephConfigMap.IsNull() && !c.CephConfigMap.IsUnknown() {
		var m configMap
		diags.Append(c.CephConfigMap.As(ctx, &m, asOptions)...)
		o.ConfigMap = claim.ConfigMapRef{Namespace: m.Namespace.ValueString(), Name: m.Name.ValueString(), Key: m.Key.ValueString()}
	}
	return o
}
