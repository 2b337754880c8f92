//go:build acc

package volumebinding_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// remake deletes a claim with its volume in spite of its finalizers, and recreates it, optionally on another unit.
func remake(t *testing.T, l *lab.Lab, spec lab.ClaimSpec, lun lab.LUN) {
	t.Helper()
	vanish(t, l, spec)
	removeVolume(t, l, spec)
	spec.LUN = lun
	core := l.Cluster.Client.CoreV1()
	if _, err := core.PersistentVolumes().Create(t.Context(), l.Volume(spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.PersistentVolumeClaims(spec.Namespace).Create(t.Context(), l.Claim(spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitBound(t.Context(), spec.Namespace, spec.Name); err != nil {
		t.Fatal(err)
	}
}

// A claim that was recreated over the same storage is adopted by the binding's next change.
func TestAccVolumeBinding_RestoredClaimContinues(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "restored", Name: "data", LUN: acctest.LUN(t, l, true, "")}
	acctest.AddClaim(t, l, spec)
	cli := configured(t, l, "restored", binding(fromClaim("restored", "data"), "", "host-a"))
	cli.Must("apply", "-auto-approve")
	remake(t, l, spec, spec.LUN)
	says(t, cli.Must("plan", "-no-color"), "will be updated in-place", "restored/data is another one than was bound")
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "restored", "data", "restored/data write-exclusive")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "another one") {
		t.Errorf("it is not the binding of the restored claim:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "restored", "data")
}

// A claim that was recreated over other storage is another binding: the old one must be detached from machines first.
func TestAccVolumeBinding_OtherVolumeReplaces(t *testing.T) {
	for name, more := range map[string]string{"when it is gone": "", "by one that is made first": createFirst} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			first, second := acctest.LUN(t, l, true, "first"), acctest.LUN(t, l, true, "second")
			spec := lab.ClaimSpec{Namespace: "remade", Name: "data", LUN: first}
			acctest.AddClaim(t, l, spec)
			console := acctest.NewConsole(t)
			cli := configured(t, l, "remade", binding(fromClaim("remade", "data"), more, "host-a")+web(l, console))
			cli.Must("apply", "-auto-approve")
			console.Await(t, "READY")
			remake(t, l, spec, second)

			says(t, cli.Must("plan", "-no-color"), "virtclaim_volume_binding.data must be replaced", "forces replacement",
				"Warning: The claim was made again over other storage", unit(first), unit(second))
			cli.Must("apply", "-auto-approve")
			heldBy(t, l, "remade", "data", "remade/data write-exclusive")
			secretIs(t, l, "host-a", idOf(t, cli))
			plugged(t, l, second)
			booted(t, console)
			if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "another one") {
				t.Errorf("it is not the binding of the claim that was made again:\n%s", plan)
			}
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "remade", "data")
		})
	}
}

// An update in place of the binding becomes a replacement then.
func TestAccVolumeBinding_ChangedWithOtherVolumeReplaces(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "data", LUN: acctest.LUN(t, l, true, "")}
	acctest.AddClaim(t, l, spec)
	cli := configured(t, l, "remade", binding(fromClaim("remade", "data"), "", "host-a"))
	cli.Must("apply", "-auto-approve")
	remake(t, l, spec, acctest.LUN(t, l, true, ""))
	cli.Replace("main.tf", `["host-a"]`, `["host-b"]`)
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "remade", "data", "remade/data write-exclusive")
	if err := secretsOn(l, map[string]int{"host-a": 0, "host-b": 1})(nil); err != nil {
		t.Error(err)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "remade", "data")
}
