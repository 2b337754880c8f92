package function

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/kubevirt"
)

// typeOf is the type that kubevirt.Shape describes.
func typeOf(shape any) attr.Type {
	switch shape := shape.(type) {
	case []any:
		return types.ListType{ElemType: typeOf(shape[0])}
	case map[string]any:
		if element, is := shape["*"]; is {
			return types.MapType{ElemType: typeOf(element)}
		}
		all := map[string]attr.Type{}
		for name, of := range shape {
			all[name] = typeOf(of)
		}
		return types.ObjectType{AttrTypes: all}
	}
	return map[any]attr.Type{"string": types.StringType, "number": types.Int64Type, "bool": types.BoolType}[shape]
}

// manifestOf is a text, or an object as JSON, which is YAML. OpenTofu also calls functions with values that are partly unknown.
func manifestOf(ctx context.Context, v attr.Value) (m kubevirt.Manifest, isKnown bool, err error) {
	value, err := v.ToTerraformValue(ctx)
	if err != nil || !value.IsFullyKnown() {
		return m, false, err
	}
	if m.Written = value.As(&m.Text) == nil; m.Written {
		return m, true, nil
	}
	packed, err := tfprotov6.NewDynamicValue(value.Type(), value)
	if err != nil {
		return m, true, err
	}
	var plain any
	if err := msgpack.Unmarshal(packed.MsgPack, &plain); err != nil {
		return m, true, err
	}
	text, err := json.Marshal(plain)
	return kubevirt.Manifest{Text: string(text)}, true, err
}
