package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// LastEvent is the message of the newest event about the claim. It is empty when there is none or events can't be read:
// it only makes another error clearer.
func (c *Client) LastEvent(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	about := fields.Set{"involvedObject.kind": "PersistentVolumeClaim", "involvedObject.uid": string(claim.UID)}
	events, err := c.objects.CoreV1().Events(claim.Namespace).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
	if err != nil {
		return ""
	}
	var newest time.Time
	message := ""
	for _, e := range events.Items {
		if at := seenAt(e); !at.Before(newest) {
			newest, message = at, e.Message
		}
	}
	return message
}

// seenAt is when the event was last seen. Which field tells depends on the API that the event was written with.
func seenAt(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}
