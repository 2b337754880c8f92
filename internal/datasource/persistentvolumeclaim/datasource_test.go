package persistentvolumeclaim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func TestSchema_IsValidWithoutVolume(t *testing.T) {
	var answer datasource.SchemaResponse
	New().Schema(t.Context(), datasource.SchemaRequest{}, &answer)
	if d := answer.Schema.ValidateImplementation(t.Context()); d.HasError() {
		t.Error(d)
	}
	if _, ok := answer.Schema.Attributes["volume"]; ok {
		t.Error("a volume without a binding would be one that nobody holds")
	}
}

// objects are a bound claim on iSCSI with CHAP, and its volume.
func objects() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	block := corev1.PersistentVolumeBlock
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "data", UID: "claim-uid"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-data", VolumeMode: &block},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-data"},
		Spec: corev1.PersistentVolumeSpec{
			VolumeMode: &block, ClaimRef: &corev1.ObjectReference{Namespace: "vms", Name: "data", UID: "claim-uid"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
				TargetPortal: "192.0.2.10", IQN: "iqn.2001-04.com.example:data", Lun: 1,
				SessionCHAPAuth: true, SecretRef: &corev1.SecretReference{Name: "chap"},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	return claim, pv
}

// readClaim reads the claim vms/data of a cluster with these objects, whose reactions react sets.
func readClaim(t *testing.T, react func(*fake.Clientset), there ...runtime.Object) (model, diag.Diagnostics) {
	t.Helper()
	f := fake.NewClientset(there...)
	if react != nil {
		react(f)
	}
	m := model{Claim: tfvalue.Claim{Namespace: types.StringValue("vms"), ClaimName: types.StringValue("data")}}
	var diags diag.Diagnostics
	lookUp(t.Context(), cluster.NewForClients("https://api.example", f, nil), &m, &diags)
	for _, action := range f.Actions() {
		if action.GetResource().Resource == "secrets" {
			t.Errorf("a secret was read: %v", action)
		}
	}
	return m, diags
}

func TestRead_BoundClaimHidesSecret(t *testing.T) {
	c, pv := objects()
	m, diags := readClaim(t, nil, c, pv)
	if len(diags) > 0 || !m.VolumeError.IsNull() {
		t.Fatal(diags, m.VolumeError)
	}
	for _, part := range []string{`protocol="iscsi"`, `name="iqn.2001-04.com.example:data/1"`, `name="192.0.2.10"`, "<readonly>"} {
		if !strings.Contains(m.DiskXML.ValueString(), part) {
			t.Errorf("%q is missing in %s", part, m.DiskXML)
		}
	}
	if strings.Contains(m.DiskXML.ValueString(), "auth") || *m.SecretRef != (secretRefModel{"vms", "chap"}) {
		t.Errorf("got the secret %v and %s", m.SecretRef, m.DiskXML)
	}
	if m.Capacity.ValueInt64() != 1<<30 || !slices.Equal(m.AccessModes, []string{"ReadWriteMany"}) || m.VolumeMode.ValueString() != "Block" {
		t.Errorf("got %+v", m)
	}
}

func TestRead_UnprocessedClaimIsPending(t *testing.T) {
	c, _ := objects()
	c.Spec.VolumeName, c.Spec.VolumeMode, c.Status = "", nil, corev1.PersistentVolumeClaimStatus{}
	m, diags := readClaim(t, nil, c)
	if len(diags) > 0 || m.Phase.ValueString() != "Pending" || m.VolumeMode.ValueString() != "Filesystem" {
		t.Fatalf("got %+v, %v", m, diags)
	}
	if !strings.Contains(m.VolumeError.ValueString(), "is Pending") || !m.DiskXML.IsNull() || !m.Capacity.IsNull() || !m.VolumeName.IsNull() || m.AccessModes == nil {
		t.Errorf("got %+v", m)
	}
}

func TestRead_ReasonNamesAttribute(t *testing.T) {
	c, pv := objects()
	f := fake.NewClientset(c, pv)
	m := model{Claim: tfvalue.Claim{Namespace: types.StringValue("vms"), ClaimName: types.StringValue("data"), MountPath: types.StringValue("/mnt")}}
	var diags diag.Diagnostics
	lookUp(t.Context(), cluster.NewForClients("https://api.example", f, nil), &m, &diags)
	if len(diags) > 0 || !strings.HasPrefix(m.VolumeError.ValueString(), "mount_path: the PersistentVolumeClaim vms/data has volumeMode Block") {
		t.Errorf("got %s, %v", m.VolumeError, diags)
	}
}

func TestRead_UnreadableRecordIsShownByID(t *testing.T) {
	c, pv := objects()
	c.Annotations = map[string]string{
		"virtclaim.io/binding.a": "no record",
		"virtclaim.io/binding.b": `{"owner":"","name":"golden","nonces":["n"],"mode":"read-shared","claimUID":"claim-uid"}`,
	}
	m, _ := readClaim(t, nil, c, pv)
	want := []bindingModel{{ID: "a"}, {ID: "b", Name: types.StringValue("golden"), AccessMode: types.StringValue("read-shared")}}
	if !slices.Equal(m.Bindings, want) {
		t.Errorf("got %+v", m.Bindings)
	}
}

// An editor of a claim can write any text into records and annotations: a terminal must not execute it.
func TestLook_TextsAreVisible(t *testing.T) {
	const raw, seen = "a\x1b[2J\u202e\nb", "a\\x1b[2J\\u202e\nb"
	c, pv := objects()
	record, err := json.Marshal(map[string]any{"owner": raw, "name": raw, "nonces": []string{"n"}, "mode": "read-shared", "claimUID": "claim-uid"})
	if err != nil {
		t.Fatal(err)
	}
	c.Annotations = map[string]string{"virtclaim.io/binding.a": string(record), "volume.beta.kubernetes.io/storage-class": raw}
	pv.Spec.ISCSI.IQN = "iqn.2001-04.com.example:a\u202eb"
	m, _ := readClaim(t, nil, c, pv)
	if len(m.Bindings) != 1 || m.Bindings[0].Owner.ValueString() != seen || m.Bindings[0].Name.ValueString() != seen {
		t.Errorf("the bindings are %+v", m.Bindings)
	}
	if m.StorageClass.ValueString() != seen {
		t.Errorf("the storage class is %s", m.StorageClass)
	}
	if shown := m.DiskXML.ValueString() + m.VolumeError.ValueString(); !strings.Contains(shown, `\u202e`) || strings.Contains(shown, "\u202e") {
		t.Errorf("the volume is %q", shown)
	}
	c.Spec.VolumeName = raw
	if m, _ = readClaim(t, nil, c, pv); m.VolumeName.ValueString() != seen || strings.ContainsAny(m.VolumeError.ValueString(), "\x1b\u202e") {
		t.Errorf("the volume is %s, %s", m.VolumeName, m.VolumeError)
	}
}

func TestRead_ForbiddenPodsAreNullWithWarning(t *testing.T) {
	c, pv := objects()
	m, diags := readClaim(t, failing("pods", apierrors.NewForbidden(corev1.Resource("pods"), "", nil)), c, pv)
	if diags.HasError() || diags.WarningsCount() != 1 || m.Pods != nil || m.UID.ValueString() != "claim-uid" {
		t.Errorf("got %+v, %v", m, diags)
	}
}

func TestRead_Refused(t *testing.T) {
	c, pv := objects()
	down := apierrors.NewServiceUnavailable("down")
	tests := []struct {
		name  string
		react func(*fake.Clientset)
		there []runtime.Object
		want  string
	}{
		{"there is no claim", nil, nil, "The PersistentVolumeClaim vms/data does not exist: create it"},
		{"claims can't be read", failing("persistentvolumeclaims", down), []runtime.Object{c, pv}, "down"},
		{"volumes can't be read", failing("persistentvolumes", down), []runtime.Object{c, pv}, "down"},
		{"pods can't be listed", failing("pods", down), []runtime.Object{c, pv}, "down"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := readClaim(t, tt.react, tt.there...)
			if diags.ErrorsCount() != 1 || !strings.Contains(diags.Errors()[0].Detail(), tt.want) {
				t.Errorf("got %v", diags)
			}
		})
	}
}

func failing(what string, err error) func(*fake.Clientset) {
	return func(f *fake.Clientset) {
		f.PrependReactor("*", what, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
}
