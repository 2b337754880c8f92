package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// eventTime bounds reading the last event after a timeout.
const eventTime = 5 * time.Second

// Watcher is a Reader that can also wait.
type Watcher interface {
	Reader
	// WatchClaim waits until done returns true for the claim. It returns an error if the claim is deleted, and one that wraps ctx's error
	// when ctx ends.
	WatchClaim(ctx context.Context, namespace, name string, done func(*corev1.PersistentVolumeClaim) bool) error
	// LastEvent returns the newest event about the claim; empty if there is none.
	LastEvent(ctx context.Context, claim *corev1.PersistentVolumeClaim) string
}

// Await is Resolve for an apply: it waits for a claim that is Pending, or being filled, until ctx ends, and then reports what the claim was
// waiting for. Errors that only a change of the cluster can resolve are returned at once.
func Await(ctx context.Context, w Watcher, ref Ref, need Need) (source.Resolved, Info, error) {
	claim, err := read(ctx, w, ref)
	if err != nil {
		return source.Resolved{}, Info{}, err
	}
	if waits(claim) != "" {
		if err := awaitReady(ctx, w, claim); err != nil {
			return source.Resolved{}, Info{}, err
		}
	}
	return Resolve(ctx, w, ref, need)
}

func awaitReady(ctx context.Context, w Watcher, claim *corev1.PersistentVolumeClaim) error {
	if isPending(claim) {
		if err := checkConsumer(ctx, w, claim); err != nil {
			return err
		}
	}
	err := w.WatchClaim(ctx, claim.Namespace, claim.Name, func(now *corev1.PersistentVolumeClaim) bool {
		claim = now
		return waits(now) == "" || now.Status.Phase == corev1.ClaimLost || now.DeletionTimestamp != nil
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the %s was still %s: %w", refOf(claim), waits(claim), err)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	// The caller's timeout has expired, but the event may have the cause.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTime)
	defer cancel()
	if event := w.LastEvent(ctx, claim); event != "" {
		return fmt.Errorf("%w; its last event: %q", err, event)
	}
	if !isPending(claim) {
		return fmt.Errorf("%w; there is no event about it: does CDI run? If nothing fills the claim any more, take that annotation off it",
			err)
	}
	return fmt.Errorf("%w; there is no event about it: does anything provision volumes of its class?", err)
}
