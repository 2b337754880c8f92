package tfvalue_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type fields struct {
	Name types.String     `tfsdk:"name"`
	Size tfvalue.Quantity `tfsdk:"size"`
	More types.Map        `tfsdk:"more"`
}

var fieldSchema = schema.Schema{Attributes: map[string]schema.Attribute{
	"name": schema.StringAttribute{Optional: true},
	"size": schema.StringAttribute{Optional: true, CustomType: tfvalue.QuantityType{}},
	"more": schema.MapAttribute{Optional: true, ElementType: types.StringType},
}}

func emptyPlan() tfsdk.Plan {
	return tfsdk.Plan{Schema: fieldSchema, Raw: tftypes.NewValue(fieldSchema.Type().TerraformType(context.Background()), nil)}
}

// A struct is written and read as by the framework.
func TestSet_AsTheFramework(t *testing.T) {
	for name, m := range map[string]fields{
		"set":     {types.StringValue("a"), tfvalue.NewQuantity("1Gi"), types.MapValueMust(types.StringType, map[string]attr.Value{"k": types.StringValue("v")})},
		"null":    {types.StringNull(), tfvalue.Quantity{StringValue: types.StringNull()}, types.MapNull(types.StringType)},
		"unknown": {types.StringUnknown(), tfvalue.Quantity{StringValue: types.StringUnknown()}, types.MapUnknown(types.StringType)},
	} {
		theirs, ours := emptyPlan(), emptyPlan()
		if d := theirs.Set(t.Context(), m); d.HasError() {
			t.Fatal(d)
		}
		if d := tfvalue.Set(t.Context(), ours.Schema, &ours.Raw, m); d.HasError() || !ours.Raw.Equal(theirs.Raw) {
			t.Errorf("%s: %v, %v, want %v", name, d, ours.Raw, theirs.Raw)
		}
		var read fields
		if d := tfvalue.Get(t.Context(), ours.Schema, ours.Raw, &read); d.HasError() || !reflect.DeepEqual(read, m) {
			t.Errorf("%s: %v, %v, want %v", name, d, read, m)
		}
	}
}

// A value of another type is an error, and leaves the plan as it is.
func TestSet_RefusesOtherTypes(t *testing.T) {
	plan := emptyPlan()
	if d := tfvalue.Set(t.Context(), plan.Schema, &plan.Raw, fields{More: types.MapNull(types.Int64Type)}); !d.HasError() || !plan.Raw.IsNull() {
		t.Errorf("%v: %v", d, plan.Raw)
	}
}

func TestSetAttributes(t *testing.T) {
	plan := emptyPlan()
	before := fields{types.StringValue("a"), tfvalue.NewQuantity("1Gi"), types.MapNull(types.StringType)}
	if d := tfvalue.Set(t.Context(), plan.Schema, &plan.Raw, before); d.HasError() {
		t.Fatal(d)
	}
	for name, c := range map[string]struct {
		set  map[string]attr.Value
		want fields
		bad  bool
	}{
		"same":  {map[string]attr.Value{"name": before.Name}, before, false},
		"other": {map[string]attr.Value{"name": types.StringUnknown()}, fields{types.StringUnknown(), before.Size, before.More}, false},
		"type":  {map[string]attr.Value{"name": types.Int64Value(1)}, before, true},
	} {
		is := tfsdk.Plan{Schema: plan.Schema, Raw: plan.Raw}
		d := tfvalue.SetAttributes(t.Context(), &is, c.set)
		var read fields
		d2 := tfvalue.Get(t.Context(), is.Schema, is.Raw, &read)
		if d.HasError() != c.bad || d2.HasError() || !reflect.DeepEqual(read, c.want) {
			t.Errorf("%s: %v %v: %v", name, d, d2, read)
		}
	}
}
