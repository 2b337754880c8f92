//go:build acc

package volumebinding_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// written has the server's volume written to, and returns what fails the test once that is gone.
func (c controlled) written() (check func()) {
	c.t.Helper()
	found := acctest.Must(filepath.Glob(filepath.Join(c.folder, "volume-*")))(c.t)
	if len(found) != 1 {
		c.t.Fatalf("there is %q", found)
	}
	const text = "written by a guest"
	if err := os.WriteFile(found[0], []byte(text), 0o666); err != nil {
		c.t.Fatal(err)
	}
	return func() {
		c.t.Helper()
		if is, err := os.ReadFile(found[0]); err != nil || string(is) != text {
			c.t.Errorf("the volume has %q, %v", is, err)
		}
		if asked := c.asked(); strings.Contains(asked, "DELETE") {
			c.t.Errorf("it was asked %q", asked)
		}
	}
}

// A server that answers each PUT with 201, and does not know If-Match, keeps its volume: with another host, and when the binding is replaced while a
// machine has the volume. An answer that names another volume is refused, and nothing is removed.
func TestAccVolumeBinding_DynamicCreatedEachTime(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-created")
	lun := acctest.LUN(t, l, false, "")
	c.say("answer", lunAnswer(l, lun))
	c.say("created", "PUT")
	off := `
resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "64Mi"
  running = false
  machine = { type = "pc", domain_type = "qemu" }
  disks   = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`
	cli := configured(t, l, "created", binding(c.source(`size = "1Gi"`, ""), "lifecycle { create_before_destroy = true }", "host-a")+off)
	cli.Must("apply", "-auto-approve", "-no-color")
	keeps := c.written()
	cli.Replace("main.tf", `hosts  = ["host-a"]`, `hosts  = ["host-a", "host-b"]`)
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "Whether binding data has its former volume is not proven", "0 added")
	keeps()
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	says(t, cli.Must("apply", "-auto-approve", "-no-color", "-replace="+data), "1 added")
	keeps()
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	c.say("answer", lunAnswer(l, acctest.LUN(t, l, false, "")))
	out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace="+data)
	if err == nil {
		t.Errorf("another volume was taken for the former one: %s", out)
	}
	says(t, out, "the volume is no longer there", "With create_before_destroy")
	keeps()
	cli.Replace("main.tf", `hosts  = ["host-a", "host-b"]`, `hosts  = ["host-a"]`)
	if out, err = cli.Run("apply", "-auto-approve", "-no-color"); err == nil {
		t.Errorf("another volume was taken for the former one: %s", out)
	}
	says(t, out, "the volume is no longer there")
	keeps()

	c.say("answer", lunAnswer(l, lun))
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.volumes(0)
	c.objects(0)
}

// A plan that deletes a dynamic volume warns of it, and names the binding; a plan alone deletes nothing.
func TestAccVolumeBinding_DynamicLossWarned(t *testing.T) {
	l := acctest.Lab(t)
	t.Cleanup(func() { // no controller of the lab ends the namespace
		acctest.MustShell(t, l, `echo '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dynamic-loss"}}' | `+
			"kubectl replace --raw /api/v1/namespaces/dynamic-loss/finalize --filename -")
	})
	c := control(t, l, "dynamic-loss")
	lun := acctest.LUN(t, l, false, "")
	c.say("answer", lunAnswer(l, lun))
	cli := configured(t, l, "loss", binding(c.source(`size = "64Mi"`, ""), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	keeps := c.written()
	const summary = "The content of volume binding data is lost"
	where := fmt.Sprintf("%s/%d", lun.IQN, lun.Number)
	says(t, cli.Must("plan", "-no-color", "-destroy"), summary, "Destroying the binding deletes its dynamic volume", where)
	cli.Replace("main.tf", `size = "64Mi"`, `size = "64Mi", pool = "b"`)
	says(t, cli.Must("plan", "-no-color"), "1 to add, 0 to change, 1 to destroy", summary, "Replacing the binding deletes its dynamic volume", where)
	keeps()

	// The namespace goes, and the pod with it: the binding ends nevertheless.
	acctest.MustShell(t, l, "kubectl --namespace dynamic-loss delete pod,secret --selector virtclaim.io/binding --wait")
	acctest.MustShell(t, l, "kubectl delete namespace dynamic-loss --wait=false")
	out := cli.Must("destroy", "-auto-approve", "-no-color")
	says(t, out, summary)
	says(t, out, "The volume of binding data may be left")
	if !isEmpty(t, cli) {
		t.Error("it is in the state")
	}
}

// A claim that another owner holds, or that is gone, is an error of the plan, and the former binding keeps its own; also with -replace.
func TestAccVolumeBinding_ReplacementRefusedInPlan(t *testing.T) {
	l := acctest.Lab(t)
	for _, name := range []string{"mine", "theirs"} {
		acctest.Claim(t, l, "vms-replaced", name, acctest.LUN(t, l, true, ""))
	}
	other := configured(t, l, "theirs", binding(fromClaim("vms-replaced", "theirs"), "", "host-a"))
	other.Must("apply", "-auto-approve", "-no-color")
	cli := configured(t, l, "mine", binding(fromClaim("vms-replaced", "mine"), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	for name, wrong := range map[string]string{"theirs": `it is held by binding "data" of owner "theirs"`, "missing": "which does not exist"} {
		was := fmt.Sprintf("claim_name = %q", "mine")
		cli.Replace("main.tf", was, fmt.Sprintf("claim_name = %q", name))
		out, err := cli.Run("plan", "-no-color")
		if err == nil {
			t.Errorf("it was planned: %s", out)
		}
		says(t, out, "The claim of a replacement can't be bound", wrong)
		cli.Replace("main.tf", fmt.Sprintf("claim_name = %q", name), was)
	}
	heldBy(t, l, "vms-replaced", "mine", "mine/data write-exclusive")
	says(t, cli.Must("plan", "-no-color", "-replace="+data), "1 to add, 0 to change, 1 to destroy")
	const record = "virtclaim.io/binding.11111111-1111-5111-8111-111111111111"
	acctest.MustShell(t, l, "kubectl --namespace vms-replaced annotate pvc mine "+record+"=unreadable")
	out, err := cli.Run("plan", "-no-color", "-replace="+data)
	if err == nil {
		t.Errorf("it was planned: %s", out)
	}
	says(t, out, "The claim of a replacement can't be bound", "an unknown holder")
	acctest.MustShell(t, l, "kubectl --namespace vms-replaced annotate pvc mine "+record+"-")
	cli.Must("destroy", "-auto-approve", "-no-color")
	other.Must("destroy", "-auto-approve", "-no-color")
}
