package volumebinding

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/direct"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// answered is m with the source that its dynamic source has answered, so that everything else handles the volume like one of that source.
// It is m without an answer, and for other sources.
func (m model) answered(ctx context.Context, own privateState, diags *diag.Diagnostics) model {
	if own.Answer == nil || m.dynamic(ctx, diags) == nil {
		return m
	}
	all := m.Source.AttributeTypes(ctx)
	values := map[string]attr.Value{}
	for name, t := range all {
		values[name] = nullOf(t)
	}
	name, fields := fieldsOf(*own.Answer)
	as := all[name].(types.ObjectType)
	inner := map[string]attr.Value{}
	for field, t := range as.AttrTypes {
		if inner[field] = nullOf(t); fields[field] != nil {
			inner[field] = fields[field]
		}
	}
	var d, more diag.Diagnostics
	values[name], d = types.ObjectValue(as.AttrTypes, inner)
	m.Source, more = types.ObjectValue(all, values)
	diags.Append(append(d, more...)...)
	return m
}

// answeredClaim is the claim in the volume of a dynamic source; nil if it has none. Other answers are not in the volume as they were.
func (m model) answeredClaim(ctx context.Context, diags *diag.Diagnostics) *dynamic.Answer {
	v, known, d := tfvalue.VolumeFrom(m.Volume)
	if diags.Append(d...); !known || len(v.Images) == 0 || m.dynamic(ctx, diags) == nil {
		return nil
	}
	ref := volume.ParseBinding(v.Images[0].Binding)
	if ref.Claim == "" {
		return nil
	}
	return &dynamic.Answer{Claim: ref.Claim, Namespace: ref.Namespace}
}

func nullOf(t attr.Type) attr.Value {
	switch t := t.(type) {
	case basetypes.ObjectType:
		return types.ObjectNull(t.AttrTypes)
	case basetypes.ListType:
		return types.ListNull(t.ElemType)
	case basetypes.MapType:
		return types.MapNull(t.ElemType)
	case basetypes.Int64Type:
		return types.Int64Null()
	case basetypes.BoolType:
		return types.BoolNull()
	}
	return types.StringNull()
}

// fieldsOf is an answer as the attribute of source, and the fields of that.
func fieldsOf(a dynamic.Answer) (name string, fields map[string]attr.Value) {
	ref := func(r *direct.SecretRef) attr.Value {
		if r == nil {
			return nil
		}
		text := map[string]attr.Type{"namespace": types.StringType, "name": types.StringType}
		return types.ObjectValueMust(text,
			map[string]attr.Value{"namespace": types.StringValue(r.Namespace), "name": types.StringValue(r.Name)})
	}
	switch {
	case a.ISCSI != nil:
		return "iscsi", map[string]attr.Value{
			"portal": types.StringValue(a.ISCSI.Portal), "iqn": types.StringValue(a.ISCSI.IQN), "lun": types.Int64Value(a.ISCSI.LUN),
			"initiator": tfvalue.OrNull(a.ISCSI.Initiator), "secret_ref": ref(a.ISCSI.SecretRef),
		}
	case a.RBD != nil:
		monitors := make([]attr.Value, 0, len(a.RBD.Monitors))
		for _, m := range a.RBD.Monitors {
			monitors = append(monitors, types.StringValue(m))
		}
		return "rbd", map[string]attr.Value{
			"monitors": types.ListValueMust(types.StringType, monitors), "pool": tfvalue.OrNull(a.RBD.Pool),
			"namespace": tfvalue.OrNull(a.RBD.Namespace), "image": types.StringValue(a.RBD.Image),
			"username":   tfvalue.OrNull(a.RBD.Username),
			"secret_ref": ref(a.RBD.SecretRef),
		}
	case a.NBD != nil:
		return "nbd", map[string]attr.Value{
			"server": types.StringValue(a.NBD.Server), "export": tfvalue.OrNull(a.NBD.Export), "tls": types.BoolValue(a.NBD.TLS),
		}
	}
	return claimSource, map[string]attr.Value{"namespace": types.StringValue(a.Namespace), "claim_name": types.StringValue(a.Claim)}
}
