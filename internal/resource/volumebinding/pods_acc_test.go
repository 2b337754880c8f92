//go:build acc

package volumebinding_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccVolumeBinding_PodsMountClaim(t *testing.T) {
	const warning = "Warning: Pods mount the claim, too"
	for _, c := range []struct {
		name, mode string
		modes      []corev1.PersistentVolumeAccessMode
		readOnly   bool
		phase      corev1.PodPhase
		// refused is the error, warned the warning; empty if there is none.
		refused, warned string
	}{
		{"write-exclusive beside a pod", "write-exclusive", nil, false, corev1.PodRunning, "while pods mount it: pod builder (Running)", ""},
		{"write-exclusive beside one that reads", "write-exclusive", once, true, corev1.PodPending, "while pods mount it: pod builder (Pending, reads)", ""},
		{"write-exclusive beside one that has ended", "write-exclusive", nil, false, corev1.PodSucceeded, "", ""},
		{"read-shared of one node beside a pod", "read-shared", once, false, corev1.PodRunning, "while pods mount it for writing: pod builder (Running)", ""},
		{"read-shared of one node beside one that reads", "read-shared", once, true, corev1.PodRunning, "", warning},
		{"read-shared beside a pod", "read-shared", nil, false, corev1.PodRunning, "", warning},
		{"write-shared beside a pod", "write-shared", nil, false, corev1.PodRunning, "", warning},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.AddClaim(t, l, lab.ClaimSpec{Namespace: "pods", Name: "data", LUN: acctest.LUN(t, l, true, ""), AccessModes: c.modes})
			defer acctest.AddPod(t, l, "pods", "data", "builder", c.readOnly, c.phase)()
			cli := configured(t, l, "pods", binding(fromClaim("pods", "data"), fmt.Sprintf("access_mode = %q", c.mode), "host-a"))
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if c.refused != "" {
				if err == nil {
					t.Error("it was bound")
				}
				says(t, out, "The volume could not be bound", "pods/data can't be used "+c.mode, c.refused)
				heldBy(t, l, "pods", "data")
				if !isEmpty(t, cli) {
					t.Error("something is in the state")
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if plan := cli.Must("plan", "-no-color"); c.warned != "" {
				says(t, out, c.warned, "used "+c.mode, "pod builder", "can't be prevented")
				says(t, plan, "No changes.", c.warned)
			} else if message("pod").MatchString(plan) {
				t.Errorf("it warns of nothing:\n%s", plan)
			}
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "pods", "data")
		})
	}
}

// A pod that mounts the claim later can't be prevented: a refresh warns of it, and an update that conflicts with it is refused.
func TestAccVolumeBinding_PodsMountLater(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "pods", "data", acctest.LUN(t, l, true, ""))
	cli := configured(t, l, "pods", binding(fromClaim("pods", "data"), `access_mode = "write-exclusive"`, "host-a"))
	cli.Must("apply", "-auto-approve")
	remove := acctest.AddPod(t, l, "pods", "data", "late", false, corev1.PodRunning)
	says(t, cli.Must("plan", "-no-color"), "No changes.", "Warning: Pods use what machines use",
		"pods/data can't be used write-exclusive while pods mount it: pod late (Running)")
	dropMarks(t, l, "pods", "data", true)
	cli.Must("apply", "-auto-approve") // the reservation is restored even if pods mount the claim
	heldBy(t, l, "pods", "data", "pods/data write-exclusive")

	cli.Replace("main.tf", "write-exclusive", "read-shared")
	cli.Must("apply", "-auto-approve")
	for before, after := range map[string]string{`"read-shared"`: `"write-exclusive"`, `["host-a"]`: `["host-a", "host-b"]`} {
		cli.Replace("main.tf", before, after)
		out, err := cli.Run("apply", "-auto-approve", "-no-color")
		if isRefused := before == `"read-shared"`; (err != nil) != isRefused {
			t.Errorf("%v\n%s", err, out)
		} else if isRefused {
			says(t, out, "The binding could not be updated", "can't be used write-exclusive while pods mount it: pod late (Running)")
		}
		heldBy(t, l, "pods", "data", "pods/data read-shared")
		cli.Replace("main.tf", after, before)
		cli.Must("apply", "-auto-approve")
	}
	remove()
	cli.Replace("main.tf", "read-shared", "write-exclusive")
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "pods", "data", "pods/data write-exclusive")
	cli.Must("destroy", "-auto-approve")
}

func TestAccVolumeBinding_PodsForbidden(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "pods", "data", acctest.LUN(t, l, true, ""))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", as(t, l, acctest.Provider(l, "pods")+binding(fromClaim("pods", "data"), "", "host-a"), "reserver", "pods"))
	out := cli.Must("apply", "-auto-approve", "-no-color")
	says(t, out, "Warning: Pods could not be asked", "pods/data is not known", "forbidden", "Allow these credentials to list pods")
	heldBy(t, l, "pods", "data", "pods/data write-exclusive")
	says(t, cli.Must("plan", "-no-color"), "No changes.", "Warning: Pods could not be asked")
	cli.Must("destroy", "-auto-approve")
}
