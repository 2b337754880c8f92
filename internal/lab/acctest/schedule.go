package acctest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// Schedule has the lab's node run all pods of a namespace that name no node, until the end of the test: no scheduler runs in the lab.
func Schedule(t *testing.T, l *lab.Lab, namespace string) *lab.Node {
	t.Helper()
	node := Must(l.Node(t.Context()))(t)
	if err := l.AddNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	pods := l.Cluster.Client.CoreV1().Pods(namespace)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "").String()})
			if err != nil {
				continue // the API server may have been stopped by the test
			}
			for e := range w.ResultChan() {
				pod, ok := e.Object.(*corev1.Pod)
				if !ok || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
					continue
				}
				to := &corev1.Binding{
					ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
					Target:     corev1.ObjectReference{Kind: "Node", Name: node.Name},
				}
				if err := pods.Bind(ctx, to, metav1.CreateOptions{}); err != nil && !apierrors.IsNotFound(err) &&
					!apierrors.IsConflict(err) && ctx.Err() == nil {
					t.Errorf("the pod %s gets no node: %v", pod.Name, err)
				}
			}
		}
	}()
	return node
}
