package cluster

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestLastEvent_NewestOfBothAPIs(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2025, 1, 1, 0, minute, 0, 0, time.UTC) }
	old := corev1.Event{Message: "old", LastTimestamp: metav1.NewTime(at(1))}
	tests := []struct {
		name string
		late corev1.Event
	}{
		{"by its last time", corev1.Event{LastTimestamp: metav1.NewTime(at(2))}},
		{"by its only time", corev1.Event{EventTime: metav1.NewMicroTime(at(2))}},
		{"by its series", corev1.Event{
			EventTime: metav1.NewMicroTime(at(0)), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(2))},
		}},
		{"by its creation", corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(2))}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			late := tt.late
			late.Message = "late"
			late.Namespace, late.Name, old.Namespace, old.Name = "vms", "a", "vms", "b"
			client := NewForClients("https://api", fake.NewClientset(&old, &late), nil)
			if got := client.LastEvent(t.Context(), pvc(corev1.ClaimPending)); got != "late" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestLastEvent_EmptyWhenForbidden(t *testing.T) {
	objects := fake.NewClientset()
	objects.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	if got := NewForClients("https://api", objects, nil).LastEvent(t.Context(), pvc(corev1.ClaimPending)); got != "" {
		t.Errorf("got %q", got)
	}
}
