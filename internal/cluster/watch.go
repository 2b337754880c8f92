package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// WatchClaim waits until done returns true for the claim. It continues after restarts of the watch and of the API server. It fails with a
// not-found error if the claim is deleted, and with the server's answer if it may not be watched. When ctx ends, the error wraps that of
// ctx, and the last error of the watch.
func (c *Client) WatchClaim(ctx context.Context, namespace, name string, done func(*corev1.PersistentVolumeClaim) bool) error {
	claims := c.objects.CoreV1().PersistentVolumeClaims(namespace)
	return watchObject(ctx, c, "PersistentVolumeClaim "+namespace+"/"+name, "persistentvolumeclaims", name, claims,
		&corev1.PersistentVolumeClaim{},
		func(claim *corev1.PersistentVolumeClaim) (bool, error) { return done(claim), nil })
}

// WatchPod is WatchClaim for a pod. An error of done ends it, too.
func (c *Client) WatchPod(ctx context.Context, namespace, name string, done func(*corev1.Pod) (bool, error)) error {
	return watchObject(ctx, c, "Pod "+namespace+"/"+name, "pods", name, c.objects.CoreV1().Pods(namespace), &corev1.Pod{}, done)
}

// watchable lists and watches objects.
type watchable[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

func watchObject[T, L runtime.Object](ctx context.Context, c *Client, what, resource, name string, from watchable[L], kind T,
	done func(T) (bool, error),
) error {
	gone := apierrors.NewNotFound(corev1.Resource(resource), name)
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &objectWatch{refused: stop}
	synced := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, gone
		}
		return false, nil
	}
	var failed error
	changed := func(e watch.Event) (bool, error) {
		if e.Type == watch.Deleted {
			return false, gone
		}
		object, ok := e.Object.(T)
		if !ok {
			return false, nil
		}
		var end bool
		end, failed = done(object)
		return end, failed
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	_, err := watchtools.UntilWithSync(watching, listWatch(w, c, only, from), kind, synced, changed)
	switch {
	case err == nil:
		return nil
	case failed != nil:
		return failed
	case watching.Err() != nil:
		err = errors.Join(context.Cause(watching), w.lastError())
	}
	return fmt.Errorf("watching %s at the API server %s: %w", what, c.server, c.explain(err))
}

// objectWatch keeps the last error of a watch, which the reflector only logs.
type objectWatch struct {
	refused context.CancelCauseFunc
	last    atomic.Pointer[error]
}

func listWatch[L runtime.Object](w *objectWatch, c *Client, only string, from watchable[L]) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			list, err := from.List(ctx, o)
			return list, w.note(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			events, err := from.Watch(ctx, o)
			return events, w.note(err)
		},
	}, c.objects)
}

// note records err, and ends the wait if a retry can't help.
func (w *objectWatch) note(err error) error {
	w.last.Store(&err)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		w.refused(err)
	}
	return err
}

func (w *objectWatch) lastError() error {
	if last := w.last.Load(); last != nil && !errors.Is(*last, context.Canceled) {
		return *last
	}
	return nil
}
