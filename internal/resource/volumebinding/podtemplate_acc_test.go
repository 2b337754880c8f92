//go:build acc

package volumebinding_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The pod has a variable of a ConfigMap, an empty folder, a probe and a label by its template. Another template has it made again, and one that would
// break it is refused.
func TestAccVolumeBinding_DynamicTemplate(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-template")
	c.say("answer", lunAnswer(l, acctest.LUN(t, l, false, "")))
	greeting := &corev1.ConfigMap{Data: map[string]string{"text": "hello"}}
	greeting.Namespace, greeting.Name = c.namespace, "greeting"
	if err := l.AddConfigMap(t.Context(), greeting); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveConfigMap(ctx, c.namespace, greeting.Name) })
	cli := configured(t, l, "template", binding(c.source(`size = "1Gi"`, `
      pod_template = <<-EOT
        metadata: {labels: {app: volumes}}
        spec:
          containers:
            - name: volume
              env: [{name: GREETING, valueFrom: {configMapKeyRef: {name: greeting, key: text}}}]
              readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
              volumeMounts: [{name: scratch, mountPath: /scratch}]
          volumes: [{name: scratch, emptyDir: {}}]
      EOT
`), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	for name, want := range map[string]string{"greeting": "hello", "probed": "yes"} {
		if got, err := os.ReadFile(filepath.Join(c.folder, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q: %v", name, got, err)
		}
	}
	app := "kubectl --namespace dynamic-template get pod --selector virtclaim.io/binding --output jsonpath='{.items[*].metadata.labels.app}'"
	if got := acctest.MustShell(t, l, app); got != "volumes" {
		t.Errorf("the pod has the label %q", got)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	cli.Replace("main.tf", "app: volumes", "app: disks")
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	if got := acctest.MustShell(t, l, app); got != "disks" {
		t.Errorf("the pod has the label %q", got)
	}
	c.volumes(1)

	cli.Replace("main.tf", "  spec:\n", "  spec:\n          restartPolicy: Never\n")
	out, err := cli.Run("validate", "-no-color")
	if err == nil {
		t.Errorf("it was not refused: %s", out)
	}
	says(t, out, `"spec.restartPolicy" must be Always`)
	cli.Replace("main.tf", "          restartPolicy: Never\n", "")
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.volumes(0)
	c.objects(0)
}
