package function

import (
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// machineOf runs the function.
func machineOf(t *testing.T, manifest attr.Value, more ...attr.Value) (types.Object, *function.FuncError) {
	t.Helper()
	wrapped, kinds := []attr.Value{}, []attr.Type{}
	for _, m := range more {
		wrapped, kinds = append(wrapped, types.DynamicValue(m)), append(kinds, types.DynamicType)
	}
	got, err := call(t, kubevirtMachine(), types.DynamicValue(manifest), types.TupleValueMust(kinds, wrapped))
	return got.(types.Object), err
}

const web = `
kind: VirtualMachine
metadata: {name: web}
spec:
  running: true
  instancetype: {kind: VirtualMachineInstancetype, name: small}
  template: {spec: {domain: {devices: {}}}}
`

const small = `
kind: VirtualMachineInstancetype
metadata: {name: small}
spec: {cpu: {guest: 2}, memory: {guest: 1Gi}}
`

func TestKubeVirtMachine_TextOrObject(t *testing.T) {
	text := types.StringValue
	spec := types.ObjectValueMust(
		map[string]attr.Type{"cpu": types.MapType{ElemType: types.NumberType}, "memory": types.MapType{ElemType: types.StringType}, "gpus": types.DynamicType},
		map[string]attr.Value{
			"cpu":    types.MapValueMust(types.NumberType, map[string]attr.Value{"guest": types.NumberValue(big.NewFloat(2))}),
			"memory": types.MapValueMust(types.StringType, map[string]attr.Value{"guest": text("1Gi")}),
			"gpus":   types.DynamicNull(), // null in a configuration has no type
		})
	metadata := types.MapValueMust(types.StringType, map[string]attr.Value{"name": text("small")})
	object := types.ObjectValueMust(
		map[string]attr.Type{"kind": types.StringType, "metadata": metadata.Type(t.Context()), "spec": spec.Type(t.Context())},
		map[string]attr.Value{"kind": text("VirtualMachineInstancetype"), "metadata": metadata, "spec": spec})
	for _, of := range []attr.Value{text(small), object} {
		values, err := machineOf(t, text(web), of)
		if err != nil {
			t.Fatal(err)
		}
		machine := values.Attributes()["machine"].(types.Object).Attributes()
		cpu := machine["cpu"].(types.Object).Attributes()
		if got := machine["memory"].String() + cpu["vcpus"].String() + machine["running"].String() + machine["tpm"].String(); got != `"1Gi"2true<null>` {
			t.Errorf("got %s", got)
		}
	}
}

func TestKubeVirtMachine_SaysWhere(t *testing.T) {
	_, err := machineOf(t, types.StringValue(web))
	if err == nil || !strings.Contains(err.Text, "line 6: spec.instancetype.name") || *err.FunctionArgument != 0 {
		t.Errorf("got %v", err)
	}
	object := types.ObjectValueMust(map[string]attr.Type{"kind": types.StringType}, map[string]attr.Value{"kind": types.StringValue("Pod")})
	if _, err := machineOf(t, object); err == nil || strings.Contains(err.Text, "line") || !strings.Contains(err.Text, "Pod") {
		t.Errorf("got %v", err)
	}
}
