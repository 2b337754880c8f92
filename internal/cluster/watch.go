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
	what := fmt.Sprintf("watching PersistentVolumeClaim %s/%s", namespace, name)
	gone := apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)

	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &claimWatch{client: c, namespace: namespace, name: name, refused: stop}
	synced := func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return false, gone
		}
		return false, nil
	}
	changed := func(e watch.Event) (bool, error) {
		claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if e.Type == watch.Deleted {
			return false, gone
		}
		return ok && done(claim), nil
	}
	_, err := watchtools.UntilWithSync(watching, w.lister(), &corev1.PersistentVolumeClaim{}, synced, changed)
	switch {
	case err == nil:
		return nil
	case watching.Err() != nil:
		err = errors.Join(context.Cause(watching), w.lastError())
	}
	return fmt.Errorf("%s at the API server %s: %w", what, c.server, err)
}

// claimWatch lists and watches one claim, and keeps the last error, which the reflector only logs.
type claimWatch struct {
	client          *Client
	namespace, name string
	refused         context.CancelCauseFunc
	last            atomic.Pointer[error]
}

func (w *claimWatch) lister() cache.ListerWatcher {
	claims := w.client.objects.CoreV1().PersistentVolumeClaims(w.namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			list, err := claims.List(ctx, o)
			return list, w.note(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			events, err := claims.Watch(ctx, o)
			return events, w.note(err)
		},
	}, w.client.objects)
}

// note records err, and ends the wait if a retry can't help.
func (w *claimWatch) note(err error) error {
	w.last.Store(&err)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		w.refused(err)
	}
	return err
}

func (w *claimWatch) lastError() error {
	if last := w.last.Load(); last != nil && !errors.Is(*last, context.Canceled) {
		return *last
	}
	return nil
}
