package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func pvc(phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "golden", ResourceVersion: "1"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

func isBound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

func withTimeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestWatchClaim_EndsWhenDone(t *testing.T) {
	client := NewForClients("https://api", fake.NewClientset(pvc(corev1.ClaimBound)), nil)
	if err := client.WatchClaim(withTimeout(t), "vms", "golden", isBound); err != nil {
		t.Error(err)
	}
}

func TestWatchClaim_ResumesBrokenWatch(t *testing.T) {
	objects := fake.NewClientset(pvc(corev1.ClaimPending))
	var watches atomic.Int32
	objects.PrependWatchReactor("persistentvolumeclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
		if watches.Add(1) == 1 {
			broken := watch.NewFake()
			broken.Stop()
			return true, broken, nil
		}
		// A change between two watches is found in the list that follows.
		err := objects.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), pvc(corev1.ClaimBound), "vms")
		return true, nil, errors.Join(apierrors.NewResourceExpired("too old"), err)
	})
	client := NewForClients("https://api", objects, nil)
	if err := client.WatchClaim(withTimeout(t), "vms", "golden", isBound); err != nil {
		t.Error(err)
	}
}

func TestWatchClaim_DeletedClaim(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		client := NewForClients("https://api", fake.NewClientset(), nil)
		if err := client.WatchClaim(withTimeout(t), "vms", "golden", isBound); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("meanwhile", func(t *testing.T) {
		objects := fake.NewClientset(pvc(corev1.ClaimPending))
		objects.PrependWatchReactor("persistentvolumeclaims", func(action clienttesting.Action) (bool, watch.Interface, error) {
			w, err := objects.Tracker().Watch(action.GetResource(), action.GetNamespace())
			go func() { _ = objects.Tracker().Delete(action.GetResource(), "vms", "golden") }()
			return true, w, err
		})
		client := NewForClients("https://api", objects, nil)
		if err := client.WatchClaim(withTimeout(t), "vms", "golden", isBound); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWatchClaim_DeadlineReportsWatchError(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, apierrors.NewInternalError(errors.New("etcd is down")))
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := client.WatchClaim(ctx, "vms", "golden", isBound)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "etcd is down") || !strings.Contains(err.Error(), client.server) {
		t.Errorf("got %v", err)
	}
}

func TestWatchClaim_SelectsOneClaim(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if selector := r.URL.Query().Get("fieldSelector"); selector != "metadata.name=golden" {
			t.Errorf("it selects %q", selector)
		}
		refuse(w, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "golden", nil))
	})
	if err := client.WatchClaim(withTimeout(t), "vms", "golden", isBound); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
