//go:build acc

package reservation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestAccReservation_DelaysClaimDeletion(t *testing.T) {
	s := newScene(t, "deleted")
	s.mustReserve(t, "a", volume.ReadShared)
	s.mustReserve(t, "b", volume.ReadShared)
	var said bytes.Buffer
	kubectl := s.shell(t, "kubectl delete pvc deleted -n reservations")
	kubectl.Stdout, kubectl.Stderr = &said, &said
	if err := kubectl.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- kubectl.Wait() }()
	acctest.Eventually(t, "the claim is being deleted", func() error {
		if s.now(t).DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	var deleting *reservation.DeletingError
	if err := s.reserve(t.Context(), "c", volume.ReadShared); !errors.As(err, &deleting) {
		t.Errorf("got %v", err)
	}
	s.mustRelease(t, "a")
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v %s", err, &said)
	case <-time.After(500 * time.Millisecond):
	}
	s.mustRelease(t, "b")
	if s.now(t) != nil {
		t.Error("the claim outlived its last reservation")
	}
	if err := <-ended; err != nil {
		t.Error(err, &said)
	}
	s.mustRelease(t, "b")
}

func TestAccReservation_ConflictsAreRetried(t *testing.T) {
	s := newScene(t, "busy", "example.com/keep")
	var group sync.WaitGroup
	for i := range 10 {
		id := fmt.Sprint("reader-", i)
		group.Go(func() {
			err := s.reserve(t.Context(), id, volume.ReadShared)
			if err != nil || reservation.Held(s.now(t), id, "nonce-"+id) != volume.ReadShared {
				t.Errorf("%s: %v", id, err)
			}
			if err := s.release(t.Context(), id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	group.Wait()
	if s.conflicts.Load() == 0 {
		t.Error("there was no conflict, so this proves nothing")
	}
	claim := s.now(t)
	if left := reservation.Look(claim); len(left) > 0 || strings.Join(claim.Finalizers, " ") != "example.com/keep kubernetes.io/pvc-protection" {
		t.Errorf("left are %v and %v", left, claim.Finalizers)
	}
}

func TestAccReservation_ContentionHasOneWinner(t *testing.T) {
	s := newScene(t, "wanted")
	var group sync.WaitGroup
	won := make(chan string, 20)
	for i := range cap(won) {
		id := fmt.Sprint("writer-", i)
		group.Go(func() {
			var held *reservation.HeldError
			if err := s.reserve(t.Context(), id, volume.WriteExclusive); err == nil {
				won <- id
			} else if !errors.As(err, &held) {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	group.Wait()
	if len(won) != 1 {
		t.Fatalf("it went to %d", len(won))
	}
	s.mustRelease(t, <-won)
}

func TestAccReservation_PatchOfOtherVersionIsRefused(t *testing.T) {
	s := newScene(t, "versions")
	before := s.now(t)
	s.mustReserve(t, "a", volume.ReadShared)
	for patch, refused := range map[string]func(error) bool{
		fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{"example.com/late":"yes"}}}`, before.ResourceVersion): apierrors.IsConflict,
		`{"metadata":{"uid":"another","annotations":{"example.com/late":"yes"}}}`:                                           apierrors.IsInvalid,
	} {
		if err := s.PatchClaim(t.Context(), s.ref.Namespace, s.ref.Name, []byte(patch)); !refused(err) {
			t.Errorf("%s: got %v", patch, err)
		}
	}
	if s.now(t).Annotations["example.com/late"] != "" {
		t.Error("it was written all the same")
	}
	s.mustRelease(t, "a")
}

func TestAccReservation_TooManyAnnotations(t *testing.T) {
	s := newScene(t, "full")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/much":%q}}}`, strings.Repeat("x", 256<<10-100))
	if err := s.PatchClaim(t.Context(), s.ref.Namespace, s.ref.Name, []byte(patch)); err != nil {
		t.Fatal(err)
	}
	err := s.reserve(t.Context(), "a", volume.ReadShared)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "256 KiB") {
		t.Errorf("got %v", err)
	}
}

func TestAccRelease_SurvivesAPIServerRestart(t *testing.T) {
	s := newScene(t, "outage")
	s.mustReserve(t, "a", volume.WriteExclusive)
	if err := s.lab.Cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- s.release(t.Context(), "a") }()
	select {
	case err := <-released:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := s.lab.Cluster.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
	if left := reservation.Look(s.now(t)); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Kubernetes records who wrote a field, and who removed one only if that client wrote another field, too.
func TestAccLastWriter(t *testing.T) {
	s := newScene(t, "written")
	s.mustReserve(t, "a", volume.WriteExclusive)
	if w := reservation.LastWriter(s.now(t), "a"); w.Manager != "terraform-provider-virtclaim" || time.Since(w.At) > time.Minute {
		t.Errorf("of a record: %s", w)
	}
	drop := func(labels map[string]string) {
		claim := s.now(t)
		claim.Annotations, claim.Labels = nil, labels
		update := metav1.UpdateOptions{FieldManager: "argocd-controller"}
		if _, err := s.lab.Cluster.Client.CoreV1().PersistentVolumeClaims(s.ref.Namespace).Update(t.Context(), claim, update); err != nil {
			t.Fatal(err)
		}
	}
	drop(nil)
	if w := reservation.LastWriter(s.now(t), "a"); w.Manager == "terraform-provider-virtclaim" {
		t.Errorf("of a record that was only taken away: %s", w)
	}
	drop(map[string]string{"app": "vms"})
	if w := reservation.LastWriter(s.now(t), "a"); w.Manager != "argocd-controller" {
		t.Errorf("of a record that was replaced: %s", w)
	}
	s.mustRelease(t, "a")
}
