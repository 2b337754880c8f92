package reservation

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writer is the last writer of a part of a claim. The zero Writer is unknown.
type Writer struct {
	Manager string
	At      time.Time
}

func (w Writer) String() string {
	if w.Manager == "" {
		return "its last writer is not known: the claim's managedFields do not have it"
	}
	return fmt.Sprintf("last written by %s at %s", w.Manager, w.At.UTC().Format(time.RFC3339))
}

// LastWriter returns the last writer of a binding's record. If the record vanished, no manager owns its annotation any more: then it is the
// last writer of the claim, but only if that was not before the reservation. Kubernetes records who set a field, but not who removed one.
func LastWriter(claim *corev1.PersistentVolumeClaim, id string) Writer {
	var record, reserved, other Writer
	for _, entry := range claim.ManagedFields {
		// Controllers write the status through a subresource, which can't change annotations.
		if entry.Subresource != "" || entry.Time == nil || entry.FieldsV1 == nil {
			continue
		}
		switch fields := managedBy(entry); {
		case has(fields.Metadata.Annotations, "f:"+keyPrefix+id):
			record.update(entry)
		case has(fields.Metadata.Finalizers, fmt.Sprintf("v:%q", Finalizer)):
			reserved.update(entry)
		default:
			other.update(entry)
		}
	}
	if record.Manager == "" && !other.At.Before(reserved.At) {
		return other
	}
	return record
}

func (w *Writer) update(entry metav1.ManagedFieldsEntry) {
	if w.Manager == "" || entry.Time.After(w.At) {
		*w = Writer{entry.Manager, entry.Time.Time}
	}
}

// managed are the relevant fields of a managedFields entry.
type managed struct {
	Metadata struct {
		Annotations map[string]json.RawMessage `json:"f:annotations"`
		Finalizers  map[string]json.RawMessage `json:"f:finalizers"`
	} `json:"f:metadata"`
}

func managedBy(entry metav1.ManagedFieldsEntry) (m managed) {
	_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &m) // if they can't be parsed, only the manager is known
	return m
}

func has(fields map[string]json.RawMessage, key string) bool {
	_, ok := fields[key]
	return ok
}
