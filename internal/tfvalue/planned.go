package tfvalue

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

var asOptions = basetypes.ObjectAsOptions{}

// chainKnown reports whether a list of images, and each image's lists, are known.
func chainKnown(images types.List) bool {
	if images.IsUnknown() {
		return false
	}
	for _, e := range images.Elements() {
		o, ok := e.(types.Object)
		if !ok || o.IsUnknown() {
			return false
		}
		for _, child := range []string{"hosts", "servers", "auth", "options"} {
			if value := o.Attributes()[child]; value == nil || value.IsUnknown() {
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
