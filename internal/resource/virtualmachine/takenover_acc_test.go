//go:build acc

package virtualmachine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Two folders with one owner and no state create the same machine at the same time: the second one takes it for what an interrupted apply has
// left, and only that one gets it into its state.
func TestAccVirtualMachine_CreationTakenOver(t *testing.T) {
	l := acctest.Lab(t)
	const rest = `
resource "virtclaim_virtual_machine" "web" {
  host        = "host-a"
  name        = "web"
  memory      = "32Mi"
  machine     = { type = "q35", domain_type = "qemu" }
  force_stop  = true
  guest_agent = true
`
	first, second := acctest.NewCLI(t), acctest.NewCLI(t)
	first.Write("main.tf", acctest.Provider(l, "twice")+rest+"  wait_for = { agent = true, timeout = \"9m\" }\n}\n")
	second.Write("main.tf", acctest.Provider(l, "twice")+rest+"}\n")
	apply, output := first.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the machine runs", func() error {
		state, err := l.Hosts["host-a"].Virsh(t.Context(), "domstate", "web")
		if err == nil && !strings.Contains(state, "running") {
			err = errors.New(state)
		}
		return err
	})
	second.Must("apply", "-auto-approve", "-no-color")
	suspended(t, l.Hosts["host-a"]) // which ends the first one's wait: a suspended guest is not waited for
	if err := apply.Wait(); err == nil || !message("The machine is in another state", "another apply of the same owner").MatchString(output()) {
		t.Errorf("both have the machine: %v\n%s", err, output())
	}
	if out := first.Must("destroy", "-auto-approve", "-no-color"); !strings.Contains(out, "0 destroyed") {
		t.Errorf("the first folder has a machine:\n%s", out)
	}
	if plan := second.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the second folder's machine is another one:\n%s", plan)
	}
	second.Must("destroy", "-auto-approve", "-no-color")
}
