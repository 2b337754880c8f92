package tfvalue

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// What a struct has of an object is read and written here field by field: each field is an attribute's value, under the name in its tag.
// The framework's own conversion compiles a regular expression for each field each time, which was a tenth of a plan.

// typed is the schema of a plan, a state or a configuration.
type typed interface{ Type() attr.Type }

// Get reads a plan, a state or a configuration of that schema into a struct.
func Get(ctx context.Context, schema typed, raw tftypes.Value, to any) (diags diag.Diagnostics) {
	value, err := schema.Type().ValueFromTerraform(ctx, raw)
	o, ok := value.(types.Object)
	if err != nil || !ok {
		diags.AddError("Unreadable value", fmt.Sprintf("It is %T and no object: %v", value, err))
		return diags
	}
	setFields(reflect.ValueOf(to).Elem(), o)
	return diags
}

// Set writes a struct into a plan or a state of that schema.
func Set(ctx context.Context, schema typed, raw *tftypes.Value, from any) (diags diag.Diagnostics) {
	all, m := map[string]tftypes.Value{}, reflect.ValueOf(from)
	for n, name := range namesOf(m.Type()) {
		if name == noAttribute {
			continue
		}
		is, err := m.Field(n).Interface().(attr.Value).ToTerraformValue(ctx)
		if err != nil {
			diags.AddError("Unreadable value of "+name, err.Error())
			return diags
		}
		all[name] = is
	}
	is, err := newValue(schema.Type().TerraformType(ctx), all)
	if err != nil {
		diags.AddError("Unwritable value", err.Error())
		return diags
	}
	*raw = is
	return diags
}

// newValue is tftypes.NewValue with an error instead of a panic, which would end the other operations of the process, too.
func newValue(of tftypes.Type, all map[string]tftypes.Value) (v tftypes.Value, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("%v", why)
		}
	}()
	return tftypes.NewValue(of, all), nil
}

// Fields returns the attributes of an object, which are all zero unless it is set.
func Fields[T any](o types.Object) (m T) {
	if !o.IsNull() && !o.IsUnknown() {
		setFields(reflect.ValueOf(&m).Elem(), o)
	}
	return m
}

func setFields(m reflect.Value, o types.Object) {
	all := o.Attributes()
	for n, name := range namesOf(m.Type()) {
		if name != noAttribute {
			m.Field(n).Set(reflect.ValueOf(all[name]))
		}
	}
}

// noAttribute is the name of a field that is no attribute, as in the framework's own conversion.
const noAttribute = "-"

var fieldNames sync.Map // []string by reflect.Type

// namesOf are the names in the tags of a struct's fields.
func namesOf(of reflect.Type) []string {
	if known, ok := fieldNames.Load(of); ok {
		return known.([]string)
	}
	names := make([]string, of.NumField())
	for n := range names {
		names[n] = of.Field(n).Tag.Get("tfsdk")
	}
	fieldNames.Store(of, names)
	return names
}
