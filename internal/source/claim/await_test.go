package claim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
)

const awaitTimeout = 20 * time.Second

// whileWaiting runs change as soon as the claim is watched.
func (f *fixture) whileWaiting(change func()) {
	f.fake.PrependWatchReactor("persistentvolumeclaims", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := f.fake.Tracker().Watch(action.GetResource(), action.GetNamespace())
		go change()
		return true, w, err
	})
}

func (f *fixture) becomes(t *testing.T, now *corev1.PersistentVolumeClaim) func() {
	t.Helper()
	return func() {
		if _, err := f.fake.CoreV1().PersistentVolumeClaims("vms").Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestAwait_ClaimBecomesBound(t *testing.T) {
	f := unbound()
	client := f.client(t)
	f.whileWaiting(f.becomes(t, bound().claim))
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	resolved, info, err := claim.Await(ctx, client, golden, exclusive)
	if err != nil || info.UID != "claim-uid" || len(resolved.Volume.Images) != 1 || resolved.Version() != "42" {
		t.Errorf("got %+v, %+v, %v", resolved, info, err)
	}
}

func TestAwait_EndsAtOnce(t *testing.T) {
	now := metav1.Now()
	terminating := unbound().claim
	terminating.DeletionTimestamp, terminating.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
	lost := unbound().claim
	lost.Status.Phase = corev1.ClaimLost

	tests := []struct {
		name   string
		change func(*fixture)
		during func(*fixture) func()
		want   string
	}{
		{"a missing claim", func(f *fixture) { f.claim = nil }, nil, "vms/golden does not exist"},
		{"a terminating claim", func(f *fixture) { f.claim = terminating }, nil, "vms/golden is being deleted"},
		{"a lost claim", func(f *fixture) { f.claim = lost }, nil, "vms/golden is Lost"},
		{"a claim without consumer", (*fixture).waitsForConsumer, nil, "node-a is no Kubernetes node"},
		{
			"a claim that terminates meanwhile", func(*fixture) {},
			func(f *fixture) func() { return f.becomes(t, terminating) }, "vms/golden is being deleted",
		},
		{
			"a claim that is lost meanwhile", func(*fixture) {},
			func(f *fixture) func() { return f.becomes(t, lost) }, "vms/golden is Lost",
		},
		{
			"a claim that vanishes meanwhile", func(*fixture) {},
			func(f *fixture) func() {
				return func() {
					_ = f.fake.CoreV1().PersistentVolumeClaims("vms").Delete(t.Context(), "golden", metav1.DeleteOptions{})
				}
			}, "not found",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := unbound()
			tt.change(f)
			client := f.client(t)
			if tt.during != nil {
				f.whileWaiting(tt.during(f))
			}
			ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
			defer cancel()
			_, _, err := claim.Await(ctx, client, golden, exclusive)
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want one with %q", err, tt.want)
			}
		})
	}
}

// A claim that a scheduler has assigned to a node, or that names its volume, is bound although its class waits for a consumer.
func TestAwait_WaitForFirstConsumer(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.PersistentVolumeClaim)
	}{
		{"when the claim names its volume", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-golden" }},
		{"when a node is selected", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "node-a"}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := unbound()
			f.waitsForConsumer()
			tt.change(f.claim)
			client := f.client(t)
			f.whileWaiting(f.becomes(t, bound().claim))
			ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
			defer cancel()
			if _, _, err := claim.Await(ctx, client, golden, exclusive); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAwait_DeadlineTellsReason(t *testing.T) {
	event := func(message string, minute int) runtime.Object {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "vms", Name: message},
			InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", UID: "claim-uid"},
			Message:        message, LastTimestamp: metav1.NewTime(time.Date(2025, 1, 1, 0, minute, 0, 0, time.UTC)),
		}
	}
	f := unbound()
	f.others = []runtime.Object{event("first", 1), event("the array is full\n\x1b[31m", 3), event("second", 2)}
	client := f.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, err := claim.Await(ctx, client, golden, exclusive)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"vms/golden was still Pending (StorageClass fast)", `its last event: "the array is full\n\x1b[31m"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}

func TestAwait_Canceled(t *testing.T) {
	f := unbound()
	client := f.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.whileWaiting(cancel)
	if _, _, err := claim.Await(ctx, client, golden, exclusive); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAwait_WatchForbidden(t *testing.T) {
	f := unbound()
	client := f.client(t)
	forbidden := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "golden", errors.New("no watch"))
	f.fake.PrependWatchReactor("persistentvolumeclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, forbidden
	})
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	_, _, err := claim.Await(ctx, client, golden, exclusive)
	if !apierrors.IsForbidden(err) || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
}

// A bound claim that CDI still fills is waited for, like a Pending one. A plan does not wait: the claim is not ready.
func TestAwait_ClaimBeingFilled(t *testing.T) {
	const prefix = "cdi.kubevirt.io/storage."
	done := map[string]string{prefix + "import.endpoint": "https://a/b", prefix + "pod.phase": "Succeeded", prefix + "condition.running": "false"}
	for name, c := range map[string]struct {
		annotations map[string]string
		filling     string
	}{
		"nothing of CDI":       {nil, ""},
		"imported":             {done, ""},
		"importing":            {map[string]string{prefix + "pod.phase": "Running", prefix + "populator.progress": "45.2%"}, `"Running", and ` + prefix + `populator.progress is "45.2%"`},
		"failing":              {map[string]string{prefix + "pod.phase": "Failed"}, prefix + `pod.phase is "Failed"`},
		"asked for":            {map[string]string{prefix + "import.endpoint": "https://a/b"}, prefix + "import.endpoint"},
		"running":              {map[string]string{prefix + "condition.running": "true"}, prefix + "condition.running"},
		"waits for an upload":  {map[string]string{prefix + "upload.target": ""}, prefix + "upload.target"},
		"being cloned":         {map[string]string{"k8s.io/CloneRequest": "vms/a"}, "k8s.io/CloneRequest"},
		"cloned":               {map[string]string{"k8s.io/CloneRequest": "vms/a", "k8s.io/CloneOf": "true"}, ""},
		"between two stages":   {map[string]string{prefix + "pod.phase": "Succeeded", prefix + "checkpoint.current": "one"}, prefix + "checkpoint.current"},
		"after the last stage": {map[string]string{prefix + "pod.phase": "Succeeded", prefix + "checkpoint.current": "two", prefix + "checkpoint.done": "true"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := bound()
			f.claim.Annotations = c.annotations
			client := f.client(t)
			_, _, err := claim.Resolve(t.Context(), client, golden, exclusive)
			var notReady *source.NotReady
			if errors.As(err, &notReady) != (c.filling != "") || err != nil && !strings.Contains(err.Error(), c.filling) {
				t.Fatalf("it resolves to %v", err)
			}
			if c.filling == "" {
				return
			}
			filled := bound().claim
			filled.Annotations = done
			f.whileWaiting(f.becomes(t, filled))
			ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
			defer cancel()
			if _, _, err := claim.Await(ctx, client, golden, exclusive); err != nil {
				t.Errorf("once it is filled: %v", err)
			}
		})
	}
	f := bound()
	f.claim.Annotations = map[string]string{prefix + "pod.phase": "Pending"}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err := claim.Await(ctx, f.client(t), golden, exclusive)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "was still being filled by CDI: its annotation "+prefix+"pod.phase") {
		t.Errorf("at the deadline: %v", err)
	}
}
