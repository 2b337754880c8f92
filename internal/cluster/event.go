package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// LastEvent returns the message of the newest event about the claim. It is empty if there is none, or if events can't be read, because it
// only details another error.
func (c *Client) LastEvent(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	return c.lastEvent(ctx, "PersistentVolumeClaim", claim)
}

// LastPodEvent is LastEvent for a pod.
func (c *Client) LastPodEvent(ctx context.Context, pod *corev1.Pod) string {
	return c.lastEvent(ctx, "Pod", pod)
}

func (c *Client) lastEvent(ctx context.Context, kind string, of metav1.Object) string {
	ctx, cancel := c.withAnswerTime(ctx)
	defer cancel()
	about := fields.Set{"involvedObject.kind": kind, "involvedObject.uid": string(of.GetUID())}
	events, err := c.objects.CoreV1().Events(of.GetNamespace()).List(ctx, metav1.ListOptions{FieldSelector: about.String()})
	if err != nil {
		return ""
	}
	var newest time.Time
	message := ""
	for _, e := range events.Items {
		at := seenAt(e)
		if e.Reason == "WaitForFirstConsumer" || e.Reason == "ExternalProvisioning" {
			at = time.Time{} // Kubernetes repeats these while a claim waits: each other event says more
		}
		if !at.Before(newest) {
			newest, message = at, e.Message
		}
	}
	return message
}

// seenAt returns when the event was last seen. The field depends on the API with which the event was written.
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
