package tfvalue

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// With returns an object with that value of an attribute. The other attributes of an object that was null are null.
func With(ctx context.Context, o types.Object, name string, value attr.Value) types.Object {
	all := maps.Clone(o.Attributes())
	if o.IsNull() {
		all = map[string]attr.Value{}
		for other, of := range o.AttributeTypes(ctx) {
			all[other], _ = of.ValueFromTerraform(ctx, tftypes.NewValue(of.TerraformType(ctx), nil)) // any type has a null
		}
	}
	all[name] = value
	return types.ObjectValueMust(o.AttributeTypes(ctx), all)
}
