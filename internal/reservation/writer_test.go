package reservation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLastWriter(t *testing.T) {
	entry := func(manager string, minute int, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{}}
		e.Time = &metav1.Time{Time: time.Date(2025, 1, 1, 0, minute, 0, 0, time.UTC)}
		e.FieldsV1.SetRawString(fields)
		return e
	}
	const (
		annotation = `{"f:metadata":{"f:annotations":{"f:virtclaim.io/binding.db":{}}}}`
		finalizer  = `{"f:metadata":{"f:finalizers":{"v:\"virtclaim.io/reservation\"":{}}}}`
		labels     = `{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`
	)
	status := entry("kube-controller-manager", 9, `{"f:status":{}}`)
	status.Subresource = "status"
	timeless := entry("ancient", 9, labels)
	timeless.Time = nil
	const nobody = "its last writer is not known: the claim's managedFields do not have it"
	tests := []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		{"who has the record", []metav1.ManagedFieldsEntry{entry("ours", 1, annotation), entry("argocd", 2, labels)}, "last written by ours at 2025-01-01T00:01:00Z"},
		{
			"the later of two who have it",
			[]metav1.ManagedFieldsEntry{entry("ours", 1, annotation), entry("kubectl-annotate", 2, annotation)},
			"last written by kubectl-annotate at 2025-01-01T00:02:00Z",
		},
		{
			"who wrote after the reservation",
			[]metav1.ManagedFieldsEntry{entry("ours", 1, finalizer), entry("argocd", 2, labels), status, timeless},
			"last written by argocd at 2025-01-01T00:02:00Z",
		},
		{"who wrote before is not to blame", []metav1.ManagedFieldsEntry{entry("ours", 3, finalizer), entry("argocd", 2, labels)}, nobody},
		{"who wrote last when all of ours is gone", []metav1.ManagedFieldsEntry{entry("helm", 1, labels), entry("argocd", 2, "?")}, "last written by argocd at 2025-01-01T00:02:00Z"},
		{"no managedFields", nil, nobody},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claim := annotatedClaim(nil)
			claim.ManagedFields = tt.entries
			if got := LastWriter(claim, "db").String(); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
