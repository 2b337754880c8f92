//go:build acc

package volumebinding_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// delayed is a claim whose class waits for a consumer, on nodes with these zones, and the source of its volume.
func delayed(t *testing.T, l *lab.Lab, zones map[string]string) (lab.DelayedClass, corev1.PersistentVolumeSource) {
	t.Helper()
	lun := acctest.LUN(t, l, false, "")
	class := acctest.DelayedClass(t, l, "delayed.example.com", zones)
	acctest.DelayedClaim(t, l, class, lab.ClaimSpec{Namespace: "consumer", Name: "data", Size: lun.Size, AccessModes: once})
	return class, corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: l.Target.Portal, IQN: lun.IQN, Lun: int32(lun.Number),
	}}
}

// selected is the node that the claim has.
func selected(t *testing.T, l *lab.Lab) string {
	t.Helper()
	return acctest.ClaimNow(t, l, "consumer", "data").Annotations[storagehelpers.AnnSelectedNode]
}

// A claim that waits for a consumer is provisioned for the host's node by an apply, with the rights of the manifest. A plan writes nothing.
func TestAccVolumeBinding_FirstConsumer(t *testing.T) {
	l := acctest.Lab(t)
	class, source := delayed(t, l, map[string]string{"host-a": "one"})
	acctest.Provision(t, l, class, source, "")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", as(t, l, acctest.Provider(l, "consumer")+binding(fromClaim("consumer", "data"), "", "host-a"), "reserver"))
	says(t, cli.Must("plan", "-no-color"), "Warning: The volume is not there yet", "consumer/data is Pending: its StorageClass "+class.Name+
		" has volumeBindingMode WaitForFirstConsumer, and the apply selects the Kubernetes node host-a for it")
	if node := selected(t, l); node != "" {
		t.Errorf("the plan has selected %s", node)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	heldBy(t, l, "consumer", "data", "consumer/data write-exclusive")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
	heldBy(t, l, "consumer", "data")
	if claim := acctest.ClaimNow(t, l, "consumer", "data"); selected(t, l) != "host-a" || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("it is left %s, with %v", claim.Status.Phase, claim.Annotations)
	}
}

// What can't work, or is not allowed, is refused before anything is written.
func TestAccVolumeBinding_FirstConsumerRefused(t *testing.T) {
	l := acctest.Lab(t)
	class, source := delayed(t, l, map[string]string{"host-a": "one", "host-b": "two"})
	acctest.Provision(t, l, class, source, "")
	from := fromClaim("consumer", "data")
	provider := acctest.Provider(l, "consumer")
	cli := acctest.NewCLI(t)
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"select_node = false": {
			provider + binding(strings.Replace(from, " }", ", select_node = false }", 1), "", "host-a"),
			[]string{"consumer/data is Pending and stays so", "remove select_node = false, with which no node is selected"},
		},
		"reserve_claims = false": {
			unreserved(provider) + binding(from, "", "host-a"), []string{"remove kubernetes.reserve_claims = false"},
		},
		"hosts that exclude each other": {
			provider + binding(from, "", "host-a", "host-b"),
			[]string{"host-a and host-b exclude each other", `"` + class.TopologyKey + `":"one"`, `"` + class.TopologyKey + `":"two"`},
		},
		"a host that is no node": {
			strings.Replace(provider, `host-a = {`, `host-a = { kubernetes_node = "nowhere",`, 1) + binding(from, "", "host-a"),
			[]string{"nowhere is no Kubernetes node that could be selected for it", "set kubernetes_node"},
		},
		"credentials that only read": {
			as(t, l, provider+binding(from, "", "host-a"), "reader"),
			[]string{"forbidden", "allow these credentials to patch persistentvolumeclaims, or let a pod use the claim once"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cli.Write("main.tf", c.config)
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if err == nil {
				t.Error("it was bound")
			}
			says(t, out, append([]string{"Error: The volume can't be bound"}, c.want...)...)
			if node := selected(t, l); node != "" || !isEmpty(t, cli) {
				t.Errorf("the node %q is selected, and the state is empty: %v", node, isEmpty(t, cli))
			}
		})
	}
	cli.Write("main.tf", provider+binding(from, "", "host-b"))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A provisioner that gives up on the node ends the apply with its reason. The next apply tries again.
func TestAccVolumeBinding_FirstConsumerGivenUp(t *testing.T) {
	l := acctest.Lab(t)
	class, source := delayed(t, l, map[string]string{"host-a": "one"})
	cli := configured(t, l, "consumer", binding(fromClaim("consumer", "data"), `timeouts = { create = "5m" }`, "host-a"))
	stop := acctest.Provision(t, l, class, source, "no room on that node")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !isEmpty(t, cli) {
		t.Errorf("it was bound: %v", err)
	}
	says(t, out, "gave up on the Kubernetes node host-a", `its last event: "no room on that node"`)
	stop()
	acctest.Provision(t, l, class, source, "")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// An apply that is killed after it has selected the node, or that does not get the answer, is completed by the next one, which selects none.
func TestAccVolumeBinding_FirstConsumerInterrupted(t *testing.T) {
	for name, killed := range map[string]bool{"killed": true, "answer lost": false} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			class, source := delayed(t, l, map[string]string{"host-a": "one"})
			tap := acctest.TapAPI(t, l, true)
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", tap.Provider(acctest.Provider(l, "consumer"))+binding(fromClaim("consumer", "data"), "", "host-a"))
			var terraform *exec.Cmd
			begun := make(chan struct{})
			tap.Arm(1, func() bool {
				<-begun
				if killed {
					if err := acctest.KillProvider(terraform); err != nil {
						t.Error(err)
					}
				}
				return true
			})
			terraform, output := cli.Start("apply", "-auto-approve", "-no-color")
			close(begun)
			if killed {
				if err := terraform.Wait(); err == nil || !isEmpty(t, cli) {
					t.Fatalf("the apply was not interrupted: %s", output())
				}
			}
			acctest.Eventually(t, "the node is selected", func() error {
				if step, yes := tap.Fired(); !yes || !strings.HasPrefix(step, "PATCH ") {
					return errors.New(step)
				}
				return nil
			})
			if node := selected(t, l); node != "host-a" {
				t.Errorf("the node is %q after the interruption", node)
			}
			tap.Arm(0, nil)
			acctest.Provision(t, l, class, source, "")
			if killed {
				cli.Must("apply", "-auto-approve", "-no-color")
			} else if err := terraform.Wait(); err != nil {
				t.Errorf("%v: %s", err, output())
			}
			if step, _ := tap.Fired(); strings.Count(step, "PATCH ") != 1 {
				t.Errorf("after the interruption there were more patches than that of the reservation: %s", step)
			}
			heldBy(t, l, "consumer", "data", "consumer/data write-exclusive")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}
