package volumebinding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The attributes precede the template, and what the provider sets where nothing is said follows it.
func TestContainerModel_TemplateMerged(t *testing.T) {
	c := container(t, map[string]attr.Value{
		"env":     mapOf("A", "attribute"),
		"secrets": nested("secrets", map[string]attr.Value{"secret_name": types.StringValue("s"), "mount_path": types.StringValue("/s")}),
		"ports":   nested("ports", map[string]attr.Value{"container_port": types.Int64Value(80)}),
		"pod_template": types.StringValue(`
metadata: {labels: {app: volumes}, annotations: {note: b}}
spec:
  hostNetwork: true
  serviceAccountName: maker
  securityContext: {seccompProfile: {type: Unconfined}}
  initContainers: [{name: first, image: "a:1"}]
  containers:
  - name: volume
    image: "other:1"
    args: [-a]
    env: [{name: A, value: template}, {name: B, valueFrom: {configMapKeyRef: {name: m, key: k}}}]
    envFrom: [{secretRef: {name: e}}]
    ports: [{containerPort: 9}, {containerPort: 80, name: requests}]
    volumeMounts: [{name: run, mountPath: /run}]
    securityContext: {allowPrivilegeEscalation: true}
    readinessProbe: {httpGet: {path: /, port: 80}}
  volumes: [{name: run, emptyDir: {medium: Memory}}]
`),
	})
	checkSpec(t, "merged", c, `
hostNetwork: true
serviceAccountName: maker
automountServiceAccountToken: true
securityContext: {seccompProfile: {type: Unconfined}}
initContainers: [{name: first, image: "a:1"}]
containers:
- name: volume
  image: volumes:1
  args: [-a]
  env: [{name: A, value: attribute}, {name: B, valueFrom: {configMapKeyRef: {name: m, key: k}}}]
  envFrom: [{secretRef: {name: e}}]
  ports: [{containerPort: 80, name: requests}, {containerPort: 9}]
  volumeMounts: [{name: volume-0, mountPath: /s, readOnly: true}, {name: run, mountPath: /run}]
  terminationMessagePolicy: FallbackToLogsOnError
  securityContext: {allowPrivilegeEscalation: true}
  readinessProbe: {httpGet: {path: /, port: 80}}
volumes: [{name: volume-0, secret: {secretName: s}}, {name: run, emptyDir: {medium: Memory}}]
`)
	var diags diag.Diagnostics
	got, err := c.template(t.Context(), &diags)
	if err != nil || cmp.Diff(map[string]string{"app": "volumes"}, got.Labels) != "" || got.Annotations["note"] != "b" {
		t.Errorf("%v %v %v", err, got.Labels, got.Annotations)
	}
}

// What would break the provider's own working is refused with its place.
func TestPodTemplate_Refused(t *testing.T) {
	for text, want := range map[string]string{
		"- a":                                                  "no PodTemplateSpec",
		"spec: {priority: high}":                               "no PodTemplateSpec",
		"spec: {colour: red}":                                  `unknown field \"colour\"`,
		"spec: {hostIPC: true, hostIPC: false}":                "already set in map",
		"metadata: {name: a}":                                  `"metadata" may have`,
		"metadata: {namespace: a}":                             `"metadata" may have`,
		"metadata: {labels: {virtclaim.io/a: b}}":              `"metadata.labels.virtclaim.io/a" is the provider's own`,
		"metadata: {annotations: {virtclaim.io/revision: b}}":  `"metadata.annotations.virtclaim.io/revision" is the provider's own`,
		"spec: {restartPolicy: Never}":                         `"spec.restartPolicy" must be Always`,
		"spec: {volumes: [{name: virtclaim}]}":                 `"spec.volumes[0].name" is the provider's own`,
		"spec: {volumes: [{name: a}, {name: volume-0}]}":       `"spec.volumes[1].name" is the provider's own`,
		"spec: {containers: [{name: other}]}":                  `"spec.containers[0]" is refused`,
		"spec: {containers: [{name: volume}, {name: volume}]}": `"spec.containers[1]" is refused`,
		"spec: {initContainers: [{name: volume}]}":             `"spec.initContainers" has one with the name volume`,
		"spec: {containers: [{name: volume, volumeMounts: [{mountPath: /var/run/virtclaim/}]}]}":      `"spec.containers[0].volumeMounts[0]" is where`,
		"spec: {containers: [{name: volume, volumeMounts: [{mountPath: /var/run/virtclaim/token}]}]}": `"spec.containers[0].volumeMounts[0]" is where`,
	} {
		if _, err := podTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "{}", "spec: {restartPolicy: Always, containers: [{name: volume, volumeMounts: [{mountPath: /var/run/virtclaimed}]}]}"} {
		if _, err := podTemplate(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
