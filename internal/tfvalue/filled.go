package tfvalue

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Filled is a volume, known or not, with the capacity and the generation of its content. A file has no generation: it is known by its time.
func Filled(ctx context.Context, o types.Object, capacity types.Int64, generation types.String) types.Object {
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
	switch kind := fields["type"].(types.String); {
	case kind.IsUnknown():
		fields["generation"] = types.StringUnknown()
	case kind.ValueString() != "file":
		fields["generation"] = generation
	}
	elements[0] = types.ObjectValueMust(top.AttributeTypes(ctx), fields)
	return types.ObjectValueMust(VolumeTypes, map[string]attr.Value{
		"capacity": capacity, "copy_on_read": o.Attributes()["copy_on_read"], "images": types.ListValueMust(imageType, elements),
	})
}
