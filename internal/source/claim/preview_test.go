package claim_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
)

func TestPreview_VolumeWithoutSecret(t *testing.T) {
	tests := []struct {
		name   string
		f      *fixture
		image  string
		secret source.SecretRef
	}{
		{"iSCSI with CHAP", bound(), "iqn.2001-04.com.example:golden/1", source.SecretRef{Namespace: "vms", Name: "chap"}},
		{"ceph-csi", ceph(), "p/i", source.SecretRef{Namespace: "ceph-csi", Name: "node"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := claim.Preview(t.Context(), tt.f.client(t), golden, claim.Options{})
			if err != nil || got.Wrong != nil || got.Volume == nil || len(got.Warnings) != 0 {
				t.Fatalf("got %+v, %v", got, err)
			}
			if top := got.Volume.Images[0]; top.Name != tt.image || top.Auth != nil || *got.Volume.Capacity != 1<<30 {
				t.Errorf("got %+v", got.Volume)
			}
			if got.Secret == nil || *got.Secret != tt.secret || got.Claim.UID != "claim-uid" {
				t.Errorf("got the secret %v and the claim %s", got.Secret, got.Claim.UID)
			}
			for _, action := range tt.f.fake.Actions() {
				if action.GetResource().Resource == "secrets" {
					t.Errorf("a secret was read: %v", action)
				}
			}
		})
	}
}

func TestPreview_NoSecretNeeded(t *testing.T) {
	f := bound()
	f.pv.Spec.ISCSI.SessionCHAPAuth = false
	got, err := claim.Preview(t.Context(), f.client(t), golden, claim.Options{})
	if err != nil || got.Volume == nil || got.Secret != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPreview_InvalidClaim(t *testing.T) {
	now, filesystem := metav1.Now(), corev1.PersistentVolumeFilesystem
	tests := []struct {
		name    string
		change  func(*fixture)
		options claim.Options
		want    string
	}{
		{"a pending claim", func(f *fixture) { *f = *unbound() }, claim.Options{}, "is Pending: it is not bound"},
		{"a claim without consumer", func(f *fixture) {
			*f = *unbound()
			f.waitsForConsumer()
		}, claim.Options{}, "WaitForFirstConsumer"},
		{"a lost claim", func(f *fixture) { f.claim.Status.Phase = corev1.ClaimLost }, claim.Options{}, "is Lost"},
		{"a terminating claim", func(f *fixture) {
			f.claim.DeletionTimestamp, f.claim.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
		}, claim.Options{}, "is being deleted"},
		{"a volume that is gone", func(f *fixture) { f.pv = nil }, claim.Options{}, "pv-golden, which does not exist"},
		{"a filesystem on a device", func(f *fixture) {
			f.claim.Spec.VolumeMode, f.pv.Spec.VolumeMode = &filesystem, &filesystem
		}, claim.Options{}, "would destroy that. Use a claim with volumeMode Block"},
		{"a type that nobody knows", func(f *fixture) {
			f.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Flocker: &corev1.FlockerVolumeSource{}}
		}, claim.Options{}, "(flocker, volumeMode Block) is not known"},
		{"an option that means nothing", func(*fixture) {}, claim.Options{Monitors: []string{"a"}}, "remove monitors"},
		{"a ConfigMap that is missing", func(f *fixture) {
			*f = *ceph()
			f.others = nil
		}, claim.Options{}, "ceph-csi/ceph-csi-config, key config.json, does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := bound()
			tt.change(f)
			got, err := claim.Preview(t.Context(), f.client(t), golden, tt.options)
			if err != nil || got.Claim == nil || got.Volume != nil || got.Wrong == nil || !strings.Contains(got.Wrong.Error(), tt.want) {
				t.Errorf("got %+v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestPreview_Hints(t *testing.T) {
	f := ceph()
	f.pv.Spec.CSI.VolumeAttributes["radosNamespace"] = "tenant"
	got, err := claim.Preview(t.Context(), f.client(t), golden, claim.Options{})
	hint := func(w string) bool { return strings.Contains(w, "RADOS namespace tenant") }
	if err != nil || !slices.ContainsFunc(got.Warnings, hint) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPreview_MissingClaimOrCluster(t *testing.T) {
	f := bound()
	f.claim = nil
	if _, err := claim.Preview(t.Context(), f.client(t), golden, claim.Options{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes"} {
		t.Run(resource, func(t *testing.T) {
			f := bound()
			client := f.client(t)
			f.fails(resource, unavailable())
			if _, err := claim.Preview(t.Context(), client, golden, claim.Options{}); !apierrors.IsServiceUnavailable(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
