//go:build acc

package reservation_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// environment is a claim on the real API server, and a client that counts conflicts.
type environment struct {
	*cluster.Client
	lab       *lab.Lab
	ref       reservation.Ref
	uid       string
	conflicts atomic.Int32
}

func (s *environment) PatchClaim(ctx context.Context, namespace, name string, patch []byte) error {
	err := s.Client.PatchClaim(ctx, namespace, name, patch)
	if apierrors.IsConflict(err) {
		s.conflicts.Add(1)
	}
	return err
}

// newScene creates a claim for the test. It stays unbound, since a record can be written on an unbound claim, too.
func newScene(t *testing.T, name string, finalizers ...string) *environment {
	t.Helper()
	l := acctest.Lab(t)
	client, err := cluster.New(cluster.Config{ConfigPath: l.Cluster.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	spec := lab.ClaimSpec{Namespace: "reservations", Name: name, LUN: lab.LUN{Size: 1 << 20}}
	if err := l.AddNamespace(t.Context(), spec.Namespace); err != nil {
		t.Fatal(err)
	}
	claim := l.Claim(spec)
	claim.Finalizers = finalizers
	claim, err = l.Cluster.Client.CoreV1().PersistentVolumeClaims(spec.Namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &environment{Client: client, lab: l, ref: reservation.Ref{Namespace: spec.Namespace, Name: name}, uid: string(claim.UID)}
	t.Cleanup(func() {
		if len(finalizers) > 0 {
			_ = client.PatchClaim(context.Background(), spec.Namespace, name, []byte(`{"metadata":{"finalizers":[]}}`))
		}
		if err := l.RemoveClaim(context.Background(), spec); err != nil {
			t.Error(err)
		}
	})
	return s
}

// now returns the claim; nil if it was deleted.
func (s *environment) now(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := s.Claim(context.WithoutCancel(t.Context()), s.ref.Namespace, s.ref.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

func (s *environment) reserve(ctx context.Context, id string, mode volume.AccessMode) error {
	b := reservation.Binding{ID: id, Owner: "prod", Name: id, Nonce: "nonce-" + id, Mode: mode, ClaimUID: s.uid}
	return reservation.Reserve(ctx, s, s.ref, b, func(context.Context) (reservation.HolderState, error) {
		return reservation.HolderState{}, errors.New("it was contested")
	})
}

func (s *environment) mustReserve(t *testing.T, id string, mode volume.AccessMode) {
	t.Helper()
	if err := s.reserve(t.Context(), id, mode); err != nil {
		t.Fatal(err)
	}
}

func (s *environment) release(ctx context.Context, id string) error {
	return reservation.Release(ctx, s, s.ref, id, "nonce-"+id, s.uid)
}

func (s *environment) mustRelease(t *testing.T, id string) {
	t.Helper()
	if err := s.release(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

// shell returns a command in a user's shell.
func (s *environment) shell(t *testing.T, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.lab.Cluster.Kubeconfig)
	return cmd
}
