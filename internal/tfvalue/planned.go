package tfvalue

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

var asOptions = basetypes.ObjectAsOptions{}

// chainKnown reports whether a list of images, and each image's lists, are known.
func chainKnown(images types.List) bool {
	if images.IsUnknown() {
		return false
	}
	for _, e := range images.Elements() {
		o, ok := e.(types.Object)
		if !ok || o.IsUnknown() || o.IsNull() {
			return false
		}
		for _, child := range []string{"hosts", "servers", "auth", "options"} {
			value := o.Attributes()[child]
			if value == nil || value.IsUnknown() {
				return false
			}
			if l, ok := value.(types.List); ok && slices.ContainsFunc(l.Elements(), attr.Value.IsUnknown) {
				return false
			}
		}
	}
	return true
}

// AsPlanned returns the value that an apply must return: known fields as planned, the other ones from actual. Terraform refuses any other
// value; the next refresh shows the drift.
func AsPlanned(ctx context.Context, planned, actual types.Object) types.Object {
	return asPlanned(ctx, planned, actual).(types.Object)
}

func asPlanned(ctx context.Context, planned, actual attr.Value) attr.Value {
	if planned == nil || planned.IsUnknown() {
		return actual
	}
	if planned.IsNull() || actual.IsNull() {
		return planned
	}
	switch p := planned.(type) {
	case types.Object:
		a := actual.(types.Object).Attributes()
		fields := map[string]attr.Value{}
		for name, value := range p.Attributes() {
			fields[name] = asPlanned(ctx, value, a[name])
		}
		return types.ObjectValueMust(p.AttributeTypes(ctx), fields)
	case types.List:
		a := actual.(types.List).Elements()
		if len(a) != len(p.Elements()) {
			return planned
		}
		elements := make([]attr.Value, len(a))
		for i, value := range p.Elements() {
			elements[i] = asPlanned(ctx, value, a[i])
		}
		return types.ListValueMust(p.ElementType(ctx), elements)
	}
	return planned
}

// SetAttributes sets attributes of a plan, whose types must be those of its schema. tfsdk.Plan.SetAttribute walks the whole plan for each.
func SetAttributes(ctx context.Context, plan *tfsdk.Plan, values map[string]attr.Value) (diags diag.Diagnostics) {
	all := map[string]tftypes.Value{}
	if err := plan.Raw.As(&all); err != nil {
		diags.AddError("Unreadable plan", err.Error())
		return diags
	}
	all = maps.Clone(all) // As returns the plan's own
	isOther := false
	for name, value := range values {
		is, err := value.ToTerraformValue(ctx)
		if err != nil {
			diags.AddError("Unreadable value of "+name, err.Error())
			return diags
		}
		isOther = isOther || !is.Equal(all[name])
		all[name] = is
	}
	if !isOther {
		return diags
	}
	is, err := newValue(plan.Raw.Type(), all)
	if err != nil {
		diags.AddError("Unwritable plan", err.Error())
		return diags
	}
	plan.Raw = is
	return diags
}
