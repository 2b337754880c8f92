//go:build acc

package volumebinding_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The user of direct storage is in its Kubernetes secret: the volume is unknown only while the secret is missing, so that a plan of the
// binding shows the real change of its machines.
func TestAccVolumeBinding_UserInSecretIsKnownAtPlan(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	cli := configured(t, l, "planned", binding(fmt.Sprintf(
		`iscsi = { portal = %q, iqn = %q, lun = %d, secret_ref = { namespace = "planned", name = "chap" } }`, l.Target.Portal, lun.IQN, lun.Number),
		"", "host-a")+`
output "volume" { value = virtclaim_volume_binding.data.volume }
`)
	plan := cli.Must("plan", "-no-color")
	says(t, plan, "volume = (known after apply)", "Warning: The volume is not there yet", "the Secret planned/chap", "does not exist")
	silent(t, plan, "a claim")

	acctest.CHAPSecret(t, l, "planned", "chap")
	plan = cli.Must("plan", "-no-color")
	says(t, plan, `username = "`+l.Target.Username+`"`)
	silent(t, plan, "not there yet")
	cli.Must("apply", "-auto-approve")

	cli.Replace("main.tf", `["host-a"]`, `["host-a", "host-b"]`)
	plan = cli.Must("plan", "-no-color")
	says(t, plan, `+ "host-b"`, "0 to add, 1 to change, 0 to destroy", "Changes to Outputs")
	silent(t, plan, "Warning: The volume", "volume = (known after apply)", "-> (known after apply) # volume", "username")
	cli.Must("apply", "-auto-approve")

	patch := []byte(`{"metadata":{"labels":{"rotated":"yes"}}}`)
	if _, err := l.Cluster.Client.CoreV1().Secrets("planned").Patch(context.Background(), "chap", types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	plan = cli.Must("plan", "-no-color")
	says(t, plan, "credentials", "-> (known after apply)", "0 to add, 1 to change, 0 to destroy")
	silent(t, plan, "Warning: The volume", "Changes to Outputs")
	cli.Must("apply", "-auto-approve")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
}

// silent fails the test when a command printed any of the parts.
func silent(t *testing.T, printed string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(printed, part) {
			t.Errorf("%q is in:\n%s", part, printed)
		}
	}
}
