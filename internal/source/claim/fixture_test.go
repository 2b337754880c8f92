package claim_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const password = "correct-horse-battery"

var (
	golden    = claim.Ref{Namespace: "vms", Name: "golden"}
	exclusive = claim.Need{AccessMode: volume.WriteExclusive, Nodes: []string{"node-a"}}
)

// fixture is a claim that is bound to an iSCSI volume with CHAP, with the objects that belong to it. Tests change it before they create a
// client.
type fixture struct {
	claim  *corev1.PersistentVolumeClaim
	pv     *corev1.PersistentVolume
	secret *corev1.Secret
	class  *storagev1.StorageClass
	others []runtime.Object
	fake   *fake.Clientset
}

func bound() *fixture {
	block, immediate := corev1.PersistentVolumeBlock, storagev1.VolumeBindingImmediate
	class := "fast"
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return &fixture{
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "golden", UID: "claim-uid"},
			Spec: corev1.PersistentVolumeClaimSpec{
				VolumeName: "pv-golden", VolumeMode: &block, StorageClassName: &class, AccessModes: modes,
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes, Capacity: size},
		},
		pv: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-golden"},
			Spec: corev1.PersistentVolumeSpec{
				VolumeMode: &block, AccessModes: modes, Capacity: size,
				ClaimRef: &corev1.ObjectReference{Namespace: "vms", Name: "golden", UID: "claim-uid"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
					TargetPortal: "192.0.2.10", IQN: "iqn.2001-04.com.example:golden", Lun: 1,
					SessionCHAPAuth: true, SecretRef: &corev1.SecretReference{Name: "chap"},
				}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
		secret: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "chap", ResourceVersion: "42"},
			Data: map[string][]byte{
				"node.session.auth.username": []byte("golden-user"), "node.session.auth.password": []byte(password),
			},
		},
		class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, VolumeBindingMode: &immediate},
	}
}

// unbound is the same claim before it was bound.
func unbound() *fixture {
	f := bound()
	f.claim.Spec.VolumeName = ""
	f.claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	return f
}

func (f *fixture) waitsForConsumer() {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	f.class.VolumeBindingMode = &wait
}

// client serves the fixture's objects; nil objects are missing.
func (f *fixture) client(t *testing.T) *cluster.Client {
	t.Helper()
	objects := f.others
	if f.claim != nil {
		objects = append(objects, f.claim)
	}
	if f.pv != nil {
		objects = append(objects, f.pv)
	}
	if f.class != nil {
		objects = append(objects, f.class)
	}
	if f.secret != nil {
		objects = append(objects, f.secret)
	}
	f.fake = fake.NewClientset(objects...)
	return cluster.NewForClients("https://api.example", f.fake, f.metadata(t))
}

// metadata serves the secret without its data, as the real API server does.
func (f *fixture) metadata(t *testing.T) *metadatafake.FakeMetadataClient {
	t.Helper()
	known := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	if f.secret == nil {
		return metadatafake.NewSimpleMetadataClient(known)
	}
	return metadatafake.NewSimpleMetadataClient(known, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: f.secret.ObjectMeta,
	})
}
