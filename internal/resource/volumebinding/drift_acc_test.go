//go:build acc

package volumebinding_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
)

// dropMarks removes virtclaim's annotations from a claim, and optionally its finalizer, as a tool does that drops unknown metadata.
func dropMarks(t *testing.T, l *lab.Lab, namespace, name string, finalizer bool) {
	t.Helper()
	claim := acctest.ClaimNow(t, l, namespace, name)
	maps.DeleteFunc(claim.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, "virtclaim.io/") })
	if finalizer {
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == reservation.Finalizer })
	}
	claim.Labels = map[string]string{"synced-at": claim.ResourceVersion}
	as := metav1.UpdateOptions{FieldManager: "argocd-controller"}
	if _, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(namespace).Update(t.Context(), claim, as); err != nil {
		t.Fatal(err)
	}
}

func TestAccVolumeBinding_LostReservationIsRestored(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "drift", "data", acctest.LUN(t, l, true, "stays"))
	console := acctest.NewConsole(t)
	cli := configured(t, l, "drift", binding(fromClaim("drift", "data"), "", "host-a")+web(l, console))
	cli.Must("apply", "-auto-approve")
	for _, finalizer := range []bool{false, true} {
		dropMarks(t, l, "drift", "data", finalizer)
		plan := cli.Must("plan", "-no-color")
		says(t, plan, "virtclaim_volume_binding.data will be updated in-place", "reserved = false -> true", "0 to add, 1 to change, 0 to destroy",
			"Warning: The reservation has vanished", `the reservation of the binding data: last written by argocd-controller`)
		cli.Must("apply", "-auto-approve")
		heldBy(t, l, "drift", "data", "drift/data write-exclusive")
		says(t, cli.Must("plan", "-no-color"), "No changes.")
	}
	console.Await(t, "READY")
	if boots := console.Boots(); boots != 1 {
		t.Errorf("the machine booted %d times", boots)
	}
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "drift", "data")
}

// A tool that drops annotations leaves the finalizer, which would block the claim's deletion for ever.
func TestAccVolumeBinding_DestroyWithLostReservation(t *testing.T) {
	for _, finalizer := range []bool{false, true} {
		t.Run(fmt.Sprintf("finalizer dropped %t", finalizer), func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "drift", "data", acctest.LUN(t, l, true, ""))
			cli := configured(t, l, "drift", binding(fromClaim("drift", "data"), "", "host-a"))
			cli.Must("apply", "-auto-approve")
			dropMarks(t, l, "drift", "data", finalizer)
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "drift", "data")
		})
	}
}

func TestAccVolumeBinding_LostReservationTakenByOther(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "drift", "data", acctest.LUN(t, l, true, ""))
	config := binding(fromClaim("drift", "data"), "", "host-a")
	first, second := configured(t, l, "first", config), configured(t, l, "second", config)
	first.Must("apply", "-auto-approve")
	dropMarks(t, l, "drift", "data", true)
	second.Must("apply", "-auto-approve")
	out, err := first.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("both have it")
	}
	says(t, out, "The binding could not be updated", `it is held by binding "data" of owner "second"`)
	first.Must("destroy", "-auto-approve")
	heldBy(t, l, "drift", "data", "second/data write-exclusive")
	second.Must("destroy", "-auto-approve")
	heldBy(t, l, "drift", "data")
}

// When the claim is deleted or replaced, a refresh warns and keeps the binding, whose credentials are still on hosts, and a destroy removes
// them.
func TestAccVolumeBinding_DeletedClaim(t *testing.T) {
	for _, c := range []struct {
		name, warning string
		happens       func(*testing.T, *lab.Lab, lab.ClaimSpec)
	}{
		{"that is being deleted", "outlived/data is being deleted", func(t *testing.T, l *lab.Lab, _ lab.ClaimSpec) {
			t.Helper()
			acctest.MustShell(t, l, "kubectl delete pvc data -n outlived --wait=false")
		}},
		{"that is gone", "outlived/data is gone", vanish},
		{"that is Lost", "outlived/data is Lost", func(t *testing.T, l *lab.Lab, spec lab.ClaimSpec) {
			t.Helper()
			removeVolume(t, l, spec)
			acctest.Eventually(t, "the claim is Lost", func() error {
				if phase := acctest.ClaimNow(t, l, "outlived", "data").Status.Phase; phase != corev1.ClaimLost {
					return fmt.Errorf("it is %s", phase)
				}
				return nil
			})
		}},
		{"that was recreated", "outlived/data is another one than was bound", func(t *testing.T, l *lab.Lab, spec lab.ClaimSpec) {
			t.Helper()
			vanish(t, l, spec)
			if _, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims("outlived").Create(t.Context(), l.Claim(spec), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := acctest.Lab(t)
			spec := lab.ClaimSpec{Namespace: "outlived", Name: "data", LUN: acctest.LUN(t, l, true, "")}
			acctest.AddClaim(t, l, spec)
			cli := configured(t, l, "outlived", binding(fromClaim("outlived", "data"), "", "host-a"))
			cli.Must("apply", "-auto-approve")
			c.happens(t, l, spec)

			says(t, cli.Must("plan", "-no-color"), "No changes.", "Warning: About the source of the binding", c.warning)
			if err := secretsOn(l, map[string]int{"host-a": 1})(nil); err != nil {
				t.Error(err)
			}
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "outlived", "data")
			if err := secretsOn(l, map[string]int{"host-a": 0})(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// vanish deletes a claim in spite of its finalizers.
func vanish(t *testing.T, l *lab.Lab, spec lab.ClaimSpec) {
	t.Helper()
	claims := l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace)
	if err := claims.Delete(t.Context(), spec.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	free := []byte(`{"metadata":{"finalizers":[]}}`)
	if _, err := claims.Patch(t.Context(), spec.Name, types.MergePatchType, free, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	gone(t, l, spec.Namespace, spec.Name)
}

// removeVolume deletes a claim's PersistentVolume in spite of its finalizers.
func removeVolume(t *testing.T, l *lab.Lab, spec lab.ClaimSpec) {
	t.Helper()
	volumes := l.Cluster.Client.CoreV1().PersistentVolumes()
	if err := volumes.Delete(t.Context(), spec.VolumeName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "the PersistentVolume is gone", func() error {
		free := []byte(`{"metadata":{"finalizers":[]}}`)
		if _, err := volumes.Patch(t.Context(), spec.VolumeName(), types.MergePatchType, free, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("it is there"))
		}
		return nil
	})
}

// A copy of a claim, as backup tools create it, carries the annotation and the finalizer of the original: they reserve nothing, and are
// removed with the next binding that reserves it.
func TestAccVolumeBinding_RestoredClaimIsFree(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "restored", Name: "data", LUN: acctest.LUN(t, l, false, "")}
	acctest.AddClaim(t, l, spec)
	before := configured(t, l, "before", binding(fromClaim("restored", "data"), "", "host-a"))
	before.Must("apply", "-auto-approve")
	backup := acctest.ClaimNow(t, l, "restored", "data")
	before.Must("destroy", "-auto-approve")
	if err := l.RemoveClaim(t.Context(), spec); err != nil {
		t.Fatal(err)
	}

	claim := l.Claim(spec)
	claim.Annotations, claim.Finalizers = map[string]string{}, backup.Finalizers
	for key, value := range backup.Annotations {
		if strings.HasPrefix(key, "virtclaim.io/") {
			claim.Annotations[key] = value
		}
	}
	core := l.Cluster.Client.CoreV1()
	if _, err := core.PersistentVolumes().Create(t.Context(), l.Volume(spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.PersistentVolumeClaims("restored").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitBound(t.Context(), "restored", "data"); err != nil {
		t.Fatal(err)
	}
	after := configured(t, l, "after", binding(fromClaim("restored", "data"), "", "host-a"))
	after.Must("apply", "-auto-approve")
	heldBy(t, l, "restored", "data", "after/data write-exclusive")
	after.Must("destroy", "-auto-approve")
	heldBy(t, l, "restored", "data")
}
