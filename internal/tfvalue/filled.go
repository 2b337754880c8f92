package tfvalue

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Filled is a volume, known or not, with the capacity and the instance of its content. A file has none: it is known by its time.
func Filled(ctx context.Context, o types.Object, capacity types.Int64, instance types.String) types.Object {
	images, ok := o.Attributes()["images"].(types.List)
	if !ok || o.IsUnknown() || images.IsUnknown() || len(images.Elements()) == 0 {
		return UnknownVolume()
	}
	elements := slices.Clone(images.Elements())
	top, ok := elements[0].(types.Object)
	if !ok || top.IsUnknown() {
		return UnknownVolume()
	}
	fields := maps.Clone(top.Attributes())
	if !isFile(top) {
		fields["instance_id"] = instance
	}
	elements[0] = types.ObjectValueMust(top.AttributeTypes(ctx), fields)
	return types.ObjectValueMust(VolumeTypes, map[string]attr.Value{
		"capacity": capacity, "copy_on_read": o.Attributes()["copy_on_read"], "images": types.ListValueMust(imageType, elements),
	})
}
