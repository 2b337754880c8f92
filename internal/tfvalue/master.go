package tfvalue

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ReadBelow applies volume.Uses to a volume that may be partly unknown: disks below the top image become read-shared.
func ReadBelow(o types.Object) types.Object {
	images, ok := o.Attributes()["images"].(types.List)
	if !ok || o.IsUnknown() || images.IsUnknown() || images.IsNull() {
		return o
	}
	elements := images.Elements()
	for depth, e := range elements {
		if i, ok := e.(types.Object); ok && depth > 0 && isExclusiveDisk(i) {
			fields := maps.Clone(i.Attributes())
			fields["access_mode"] = types.StringValue(string(volume.ReadShared))
			elements[depth] = types.ObjectValueMust(imageTypes, fields)
		}
	}
	fields := maps.Clone(o.Attributes())
	fields["images"] = types.ListValueMust(imageType, elements)
	return types.ObjectValueMust(VolumeTypes, fields)
}

// isExclusiveDisk reports whether an image is known to be a write-exclusive disk. An image with an unknown binding is not.
func isExclusiveDisk(i types.Object) bool {
	is := func(name string, want attr.Value) bool { return want.Equal(i.Attributes()[name]) }
	return isFile(i) && is("binding", types.StringNull()) &&
		is("access_mode", types.StringValue(string(volume.WriteExclusive)))
}

// isFile reports whether an image is a file. A local one that will be created has no URI yet.
func isFile(i types.Object) bool {
	uri, _ := i.Attributes()["uri"].(types.String)
	is, err := volume.ParseURI(uri.ValueString())
	return err == nil && is.Type == "file"
}
