package volumebinding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/yaml"
)

// container is a container with these attributes beside those that it must have; its type is that of the schema.
func container(t *testing.T, with map[string]attr.Value) containerModel {
	t.Helper()
	values, kinds := map[string]attr.Value{}, containerAttribute().GetType().(types.ObjectType).AttrTypes
	for name, kind := range kinds {
		values[name] = nullOf(kind)
	}
	values["namespace"], values["image"] = types.StringValue("vms"), types.StringValue("volumes:1")
	for name, v := range with {
		values[name] = v
	}
	var diags diag.Diagnostics
	m := objectAs[containerModel](t.Context(), types.ObjectValueMust(kinds, values), &diags)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return *m
}

func textsOf(all ...string) attr.Value {
	var values []attr.Value
	for _, text := range all {
		values = append(values, types.StringValue(text))
	}
	return types.ListValueMust(types.StringType, values)
}

func mapOf(name, text string) attr.Value {
	return types.MapValueMust(types.StringType, map[string]attr.Value{name: types.StringValue(text)})
}

// nested is an object of a nested attribute; what it has not is null.
func nested(attribute string, with map[string]attr.Value) attr.Value {
	kind := containerAttribute().Attributes[attribute].GetType()
	list, isList := kind.(types.ListType)
	if isList {
		kind = list.ElemType
	}
	kinds := kind.(types.ObjectType).AttrTypes
	values := map[string]attr.Value{}
	for name, k := range kinds {
		if values[name] = nullOf(k); with[name] != nil {
			values[name] = with[name]
		}
	}
	object := types.ObjectValueMust(kinds, values)
	if isList {
		return types.ListValueMust(kind, []attr.Value{object})
	}
	return object
}

// Each attribute, alone, is in the pod what it says.
func TestContainerModel_Template(t *testing.T) {
	text := func(s string) attr.Value { return types.StringValue(s) }
	number := func(n int64) attr.Value { return types.Int64Value(n) }
	yes := types.BoolValue(true)
	const rest = "ports: [{containerPort: 8443}], terminationMessagePolicy: FallbackToLogsOnError"
	const secure = "securityContext: {allowPrivilegeEscalation: false, seccompProfile: {type: RuntimeDefault}}"
	// main is what a container has beside the parts, and the pod beside more.
	main := func(parts ...string) string {
		return "containers: [{name: volume, image: 'volumes:1', " + strings.Join(parts, ", ") + "}]\n"
	}
	const pod, noToken = "securityContext: {}\n", "automountServiceAccountToken: false\n"
	usual := pod + noToken
	tests := map[string]struct {
		value attr.Value
		want  string
	}{
		"namespace": {text("vms"), main(rest, secure) + usual},
		"image":     {text("volumes:1"), main(rest, secure) + usual},
		"scheme":    {text("http"), main(rest, secure) + usual},
		"command":   {textsOf("/a", "b"), main("command: [/a, b]", rest, secure) + usual},
		"args":      {textsOf("-a", "b"), main("args: [-a, b]", rest, secure) + usual},
		"env":       {mapOf("A", "b"), main("env: [{name: A, value: b}]", rest, secure) + usual},
		"ports": {
			nested("ports", map[string]attr.Value{"container_port": number(80), "host_port": number(8080)}),
			main("ports: [{containerPort: 80, hostPort: 8080}], terminationMessagePolicy: FallbackToLogsOnError", secure) + usual,
		},
		"resources": {
			nested("resources", map[string]attr.Value{"requests": mapOf("cpu", "1"), "limits": mapOf("memory", "64Mi")}),
			main("resources: {requests: {cpu: '1'}, limits: {memory: 64Mi}}", rest, secure) + usual,
		},
		"claims": {
			nested("claims", map[string]attr.Value{"claim_name": text("c"), "mount_path": text("/c"), "read_only": yes}),
			main("volumeMounts: [{name: volume-0, mountPath: /c, readOnly: true}]", rest, secure) + usual +
				"volumes: [{name: volume-0, persistentVolumeClaim: {claimName: c, readOnly: true}}]",
		},
		"claims, a device": {
			nested("claims", map[string]attr.Value{"claim_name": text("c"), "device_path": text("/c")}),
			main("volumeDevices: [{name: volume-0, devicePath: /c}]", rest, secure) + usual +
				"volumes: [{name: volume-0, persistentVolumeClaim: {claimName: c}}]",
		},
		"secrets": {
			nested("secrets", map[string]attr.Value{"secret_name": text("s"), "mount_path": text("/s")}),
			main("volumeMounts: [{name: volume-0, mountPath: /s, readOnly: true}]", rest, secure) + usual +
				"volumes: [{name: volume-0, secret: {secretName: s}}]",
		},
		"service_account": {text("maker"), main(rest, secure) + pod + "serviceAccountName: maker\nautomountServiceAccountToken: true"},
		"pull_secrets":    {textsOf("a", "b"), main(rest, secure) + usual + "imagePullSecrets: [{name: a}, {name: b}]"},
		"node_selector":   {mapOf("disk", "ssd"), main(rest, secure) + usual + "nodeSelector: {disk: ssd}"},
		"tolerations": {
			nested("tolerations", map[string]attr.Value{"key": text("k"), "operator": text("Equal"), "value": text("v"), "effect": text("NoSchedule")}),
			main(rest, secure) + usual + "tolerations: [{key: k, operator: Equal, value: v, effect: NoSchedule}]",
		},
		"security_context": {
			nested("security_context", map[string]attr.Value{"run_as_non_root": yes, "run_as_user": number(7), "fs_group": number(8)}),
			main(rest, "securityContext: {allowPrivilegeEscalation: false, seccompProfile: {type: RuntimeDefault}, capabilities: {drop: [ALL]}}") +
				noToken + "securityContext: {runAsNonRoot: true, runAsUser: 7, fsGroup: 8}",
		},
		"pod_template": {text("spec: {priorityClassName: high}"), main(rest, secure) + usual + "priorityClassName: high"},
	}
	tested := map[string]bool{}
	for name, tt := range tests {
		attribute, _, _ := strings.Cut(name, ",")
		tested[attribute] = true
		checkSpec(t, name, container(t, map[string]attr.Value{attribute: tt.value}), tt.want)
	}
	for name := range containerAttribute().Attributes {
		if !tested[name] {
			t.Errorf("no test has %s", name)
		}
	}
}

// checkSpec compares the pod's spec with YAML.
func checkSpec(t *testing.T, name string, c containerModel, want string) {
	t.Helper()
	var diags diag.Diagnostics
	got, err := c.template(t.Context(), &diags)
	if err != nil || diags.HasError() {
		t.Errorf("%s: %v %v", name, err, diags)
		return
	}
	var is, wanted any
	text, err := yaml.Marshal(got.Spec)
	if err == nil {
		err = yaml.Unmarshal(text, &is)
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(want), &wanted)
	}
	if err != nil {
		t.Fatal(err)
	}
	empty := func(k string, v any) bool { m, ok := v.(map[string]any); return ok && len(m) == 0 && k == "resources" }
	if diff := cmp.Diff(wanted, is, cmp.FilterPath(func(p cmp.Path) bool {
		at, ok := p.Last().(cmp.MapIndex)
		if !ok {
			return false
		}
		_, v := at.Values()
		return v.IsValid() && empty(at.Key().String(), v.Interface())
	}, cmp.Ignore())); diff != "" {
		t.Errorf("%s: -want +got %s", name, diff)
	}
}
