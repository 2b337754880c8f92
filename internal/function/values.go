package function

import (
	"context"
	"encoding/json"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

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
	text, err := json.Marshal(plain(value))
	return kubevirt.Manifest{Text: string(text)}, true, err
}

// plain is a value without Terraform's types.
func plain(v tftypes.Value) any {
	var text string
	var number big.Float
	var is bool
	var items []tftypes.Value
	var fields map[string]tftypes.Value
	switch {
	case v.IsNull():
		return nil
	case v.As(&text) == nil:
		return text
	case v.As(&number) == nil:
		return json.Number(number.Text('f', -1))
	case v.As(&is) == nil:
		return is
	case v.As(&items) == nil:
		all := []any{}
		for _, item := range items {
			all = append(all, plain(item))
		}
		return all
	}
	all := map[string]any{}
	_ = v.As(&fields) // there is no other kind
	for name, field := range fields {
		all[name] = plain(field)
	}
	return all
}
