package volumecontent

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A record that could not be read is an error: otherwise the volume would be written again.
func TestClaimed_Read(t *testing.T) {
	objects := fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "vms", Name: "golden", UID: "uid-1",
		Annotations: map[string]string{"virtclaim.io/content": `{"binding":"fill","generation":"g","claimUID":"uid-1"}`},
	}})
	c := claimed{ref: volume.BindingRef{ID: "fill", Namespace: "vms", Claim: "golden"}, cluster: cluster.NewForClients("", objects, nil)}
	if is, err := c.read(t.Context()); err != nil || is.Generation != "g" {
		t.Errorf("%+v, %v", is, err)
	}
	other, gone := c, c
	other.ref.ID, gone.ref.Claim = "other", "gone"
	for name, c := range map[string]claimed{"another binding": other, "no claim": gone} {
		if is, err := c.read(t.Context()); err != nil || is.Generation != "" {
			t.Errorf("%s: %+v, %v", name, is, err)
		}
	}
	objects.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("down"))
	})
	if is, err := c.read(t.Context()); err == nil {
		t.Errorf("an API server that fails has the record %+v", is)
	}
}
