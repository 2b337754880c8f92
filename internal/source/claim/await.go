package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// eventTime bounds reading the last event after a timeout.
const eventTime = 5 * time.Second

// Watcher is a Reader that can also wait, and select the node of a claim.
type Watcher interface {
	Reader
	reservation.Claims
	CSINode(ctx context.Context, name string) (*storagev1.CSINode, error)
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	// WatchClaim waits until done returns true for the claim. It returns an error if the claim is deleted, and one that wraps ctx's error
	// when ctx ends.
	WatchClaim(ctx context.Context, namespace, name string, done func(*corev1.PersistentVolumeClaim) bool) error
	// LastEvent returns the newest event about the claim; empty if there is none.
	LastEvent(ctx context.Context, claim *corev1.PersistentVolumeClaim) string
}

// Await is Resolve for an apply: it selects the node of a claim that waits for one, waits for a claim that is Pending or being filled until
// ctx ends, and then reports what the claim was waiting for. Errors that only a change of the cluster can resolve are returned at once.
func Await(ctx context.Context, w Watcher, ref Ref, need Need) (source.Resolved, Info, error) {
	claim, err := read(ctx, w, ref)
	if err != nil {
		return source.Resolved{}, Info{}, err
	}
	if waits(claim) != "" {
		if err := need.awaitReady(ctx, w, claim); err != nil {
			return source.Resolved{}, Info{}, err
		}
	}
	return Resolve(ctx, w, ref, need)
}

func (n Need) awaitReady(ctx context.Context, w Watcher, claim *corev1.PersistentVolumeClaim) error {
	node := claim.Annotations[storagehelpers.AnnSelectedNode]
	if isPending(claim) {
		class, err := delayingClass(ctx, w, claim)
		if err == nil && class != nil {
			node, err = n.Nodes[0], n.selectNode(ctx, w, claim, class)
		}
		if err != nil {
			return err
		}
	}
	ended := false
	err := w.WatchClaim(ctx, claim.Namespace, claim.Name, func(now *corev1.PersistentVolumeClaim) bool {
		claim, ended = now, slices.Contains(n.Nodes, node) && gaveUp(ctx, w, now)
		return ended || waits(now) == "" || now.Status.Phase == corev1.ClaimLost || now.DeletionTimestamp != nil
	})
	if ended {
		why := "there is no event about it"
		if event := w.LastEvent(ctx, claim); event != "" {
			why = fmt.Sprintf("its last event: %q", event)
		}
		return fmt.Errorf("the provisioner of the %s gave up on the Kubernetes node %s, and took its selection back: apply again when the "+
			"cause is gone, or bind another host first; %s", refOf(claim), node, why)
	}
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
