package lab

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// settleTime is the timeout for Kubernetes' controllers.
var settleTime = Patience(30 * time.Second)

// AwaitBound waits until a claim is bound.
func (l *Lab) AwaitBound(ctx context.Context, namespace, name string) error {
	var last *corev1.PersistentVolumeClaim
	err := l.await(ctx, object{resource: "persistentvolumeclaims", namespace: namespace, name: name}, nil, func(e watch.Event) bool {
		claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if ok {
			last = claim
		}
		return ok && e.Type != watch.Deleted && claim.Status.Phase == corev1.ClaimBound
	})
	if err != nil {
		return fmt.Errorf("the claim %s/%s is not bound (last seen: %s): %w", namespace, name, phase(last), err)
	}
	return nil
}

func phase(claim *corev1.PersistentVolumeClaim) string {
	if claim == nil {
		return "never"
	}
	return string(claim.Status.Phase)
}

// awaitGone waits until an object does not exist.
func (l *Lab) awaitGone(ctx context.Context, o object) error {
	absent := func(store cache.Store) (bool, error) { return len(store.ListKeys()) == 0, nil }
	err := l.await(ctx, o, absent, func(e watch.Event) bool { return e.Type == watch.Deleted })
	if err != nil {
		return fmt.Errorf("%s does not go: look for finalizers: %w", o, err)
	}
	return nil
}

// await watches an object until done is true for an event. It ends early if the precondition, if any, is true.
func (l *Lab) await(ctx context.Context, o object, precondition watchtools.PreconditionFunc, done func(watch.Event) bool) error {
	return l.awaitOneOf(ctx, o.resource, o.namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, o.name), precondition, done)
}

// awaitOneOf is await for the objects of a selector.
func (l *Lab) awaitOneOf(ctx context.Context, resource, namespace string, only fields.Selector,
	precondition watchtools.PreconditionFunc, done func(watch.Event) bool,
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, fmt.Errorf("nothing happened for %s", settleTime))
	defer cancel()
	source := cache.NewListWatchFromClient(l.Cluster.Client.CoreV1().RESTClient(), resource, namespace, only)
	kinds := map[string]runtime.Object{
		"persistentvolumeclaims": &corev1.PersistentVolumeClaim{},
		"persistentvolumes":      &corev1.PersistentVolume{},
		"secrets":                &corev1.Secret{},
		"configmaps":             &corev1.ConfigMap{},
		"nodes":                  &corev1.Node{},
		"pods":                   &corev1.Pod{},
		"events":                 &corev1.Event{},
	}
	_, err := watchtools.UntilWithSync(ctx, source, kinds[resource], precondition, func(e watch.Event) (bool, error) {
		return done(e), nil
	})
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}
