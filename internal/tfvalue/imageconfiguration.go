package tfvalue

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ImageConfigurationTypes are those of the configuration of a container image: a disk says it, and a machine runs it.
var ImageConfigurationTypes = map[string]attr.Type{
	"architecture": types.StringType, "user": types.StringType, "working_directory": types.StringType, "stop_signal": types.StringType,
	"entrypoint": types.ListType{ElemType: types.StringType}, "command": types.ListType{ElemType: types.StringType},
	"environment": types.MapType{ElemType: types.StringType},
}
