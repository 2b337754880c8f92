package claim_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var last = claim.Last{UID: "claim-uid", Auth: &volume.Auth{Type: "iscsi", Username: "last-user", SecretUUID: "uuid"}}

func TestRefresh_CurrentVolume(t *testing.T) {
	f := bound()
	f.pv.Spec.ISCSI.TargetPortal = "192.0.2.99"
	f.pv.UID = "pv-uid"
	got, err := claim.Refresh(t.Context(), f.client(t), golden, claim.Options{}, last)
	if err != nil || got.Volume == nil || len(got.Warnings) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	top := got.Volume.Images[0]
	if top.Servers[0].Host != "192.0.2.99" || *got.Volume.Capacity != 1<<30 || got.Version != "42" || got.VolumeUID != "pv-uid" {
		t.Errorf("got %+v, version %q", top, got.Version)
	}
	if *top.Auth != (volume.Auth{Type: "iscsi", Username: "last-user"}) {
		t.Errorf("the user is %+v, not that of the last look", top.Auth)
	}
	for _, action := range f.fake.Actions() {
		if action.GetResource().Resource == "secrets" {
			t.Errorf("a secret was read: %v", action)
		}
	}
}

func TestRefresh_KeepsLastVolumeWithWarning(t *testing.T) {
	now := metav1.Now()
	tests := []struct {
		name   string
		change func(*fixture)
		want   string
	}{
		{"a terminating claim", func(f *fixture) {
			f.claim.DeletionTimestamp, f.claim.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
		}, "is being deleted"},
		{"a lost claim", func(f *fixture) { f.claim.Status.Phase = corev1.ClaimLost }, "is Lost, no longer Bound"},
		{"a pending claim", func(f *fixture) { f.claim.Status.Phase = corev1.ClaimPending }, "is Pending, no longer Bound"},
		{"a claim that is gone", func(f *fixture) { f.claim = nil }, "PersistentVolumeClaim vms/golden is gone"},
		{"another claim of the name", func(f *fixture) { f.claim.UID = "new-uid" }, "another one than was bound (UID new-uid instead of claim-uid)"},
		{"a volume that is gone", func(f *fixture) { f.pv = nil }, "pv-golden, which does not exist"},
		{"a volume of another claim", func(f *fixture) { f.pv.Spec.ClaimRef.UID = "other-uid" }, `belongs to the PersistentVolumeClaim vms/golden with UID "other-uid"`},
		{"a released volume", func(f *fixture) { f.pv.Status.Phase = corev1.VolumeReleased }, "is Released"},
		{"a volume of another type", func(f *fixture) {
			f.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Flocker: &corev1.FlockerVolumeSource{}}
		}, "(flocker, volumeMode Block) is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := bound()
			tt.change(f)
			got, err := claim.Refresh(t.Context(), f.client(t), golden, claim.Options{}, last)
			if err != nil || got.Volume != nil || got.Version != "" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], tt.want) {
				t.Errorf("got %+v, %v, want a warning with %q", got, err, tt.want)
			}
		})
	}
	t.Run("a volume that now asks for credentials", func(t *testing.T) {
		got, err := claim.Refresh(t.Context(), bound().client(t), golden, claim.Options{}, claim.Last{UID: "claim-uid"})
		if err != nil || got.Volume != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "now asks for credentials") {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestRefresh_UnknownUID(t *testing.T) {
	got, err := claim.Refresh(t.Context(), bound().client(t), golden, claim.Options{}, claim.Last{Auth: last.Auth})
	if err != nil || got.Volume == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRefresh_WithoutSecret(t *testing.T) {
	tests := []struct {
		name string
		err  error
	}{
		{"that is gone", apierrors.NewNotFound(corev1.Resource("secrets"), "chap")},
		{"that may not be read", apierrors.NewForbidden(corev1.Resource("secrets"), "chap", nil)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, secrets := refreshable(t)
			failGet(secrets, tt.err)
			got, err := claim.Refresh(t.Context(), client, golden, claim.Options{}, last)
			if err != nil || got.Volume == nil || got.Version != "" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "vms/chap") {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestRefresh_ClusterError(t *testing.T) {
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes"} {
		t.Run(resource, func(t *testing.T) {
			f := bound()
			client := f.client(t)
			f.fails(resource, unavailable())
			if _, err := claim.Refresh(t.Context(), client, golden, claim.Options{}, last); !apierrors.IsServiceUnavailable(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("secrets", func(t *testing.T) {
		client, secrets := refreshable(t)
		failGet(secrets, unavailable())
		if _, err := claim.Refresh(t.Context(), client, golden, claim.Options{}, last); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("got %v", err)
		}
	})
}

// refreshable returns a client of a bound claim, and its part for the versions of secrets.
func refreshable(t *testing.T) (*cluster.Client, *metadatafake.FakeMetadataClient) {
	t.Helper()
	f := bound()
	f.client(t)
	secrets := f.metadata(t)
	return cluster.NewForClients("https://api.example", f.fake, secrets), secrets
}

func failGet(secrets *metadatafake.FakeMetadataClient, err error) {
	secrets.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}
