package function

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/kubevirt"
)

// kubevirtMachine is a manifest of KubeVirt as values for resources.
func kubevirtMachine() function.Function {
	return pure{"kubevirt_machine", function.Definition{
		Summary: "A KubeVirt manifest as values for resources",
		MarkdownDescription: "Turns the manifest of a `VirtualMachine` or `VirtualMachineInstance` of KubeVirt into values for the " +
			"resources of this provider, by the names of their attributes. Keys are always the same; what the manifest lacks is null, " +
			"or an empty map: `machine` (with `disks` and `interfaces`), `disks` (`virtclaim_disk`), `bindings` " +
			"(`virtclaim_volume_binding`; `claim` is the PersistentVolumeClaim of a DataVolume), `contents` " +
			"(`virtclaim_volume_content`), `secrets` (the Kubernetes Secrets that must exist), and `unsupported`: each field that " +
			"is not carried over, with its path and a reason. What would make another machine of it is an error at its line.\n\n" +
			"The module `examples/modules/kubevirt-machine` makes resources of these values: see the guide " +
			"[From KubeVirt](../guides/from-kubevirt.md).",
		Parameters: []function.Parameter{function.DynamicParameter{
			Name: "manifest",
			MarkdownDescription: "The manifest: YAML, such as `file(\"web.yaml\")`, or an object. YAML may have further objects to which " +
				"the machine refers.",
		}},
		VariadicParameter: function.DynamicParameter{
			Name: "more",
			MarkdownDescription: "Further manifests to which it refers: an instance type, a preference, DataVolumes, ConfigMaps and " +
				"Secrets. Of a Secret only the names of its keys count.",
		},
		Return: function.ObjectReturn{AttributeTypes: machineType().AttrTypes},
	}, func(ctx context.Context, manifest, more attr.Value) (any, error) {
		var all []kubevirt.Manifest
		for _, value := range append([]attr.Value{manifest}, more.(types.Tuple).Elements()...) {
			m, isKnown, err := manifestOf(ctx, value)
			if err != nil || !isKnown {
				return types.ObjectUnknown(machineType().AttrTypes), err
			}
			all = append(all, m)
		}
		values, err := kubevirt.Convert(all[0], all[1:]...)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(values)
		if err != nil {
			return nil, err
		}
		value, err := (&tfprotov6.RawState{JSON: text}).Unmarshal(machineType().TerraformType(ctx)) // what is absent is null
		if err != nil {
			return nil, err
		}
		return machineType().ValueFromTerraform(ctx, value)
	}}
}

// machineType is what the function returns.
var machineType = sync.OnceValue(func() types.ObjectType {
	var shape any
	if err := json.Unmarshal([]byte(kubevirt.Shape), &shape); err != nil {
		panic(err) // a test has it
	}
	return typeOf(shape).(types.ObjectType)
})
