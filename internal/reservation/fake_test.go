package reservation

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var golden = Ref{"vms", "golden"}

// fakeClaims is one claim with the behavior of an API server: a patch of another version is a conflict, and a claim that is being deleted
// is removed with its last finalizer. client-go's fake does neither.
type fakeClaims struct {
	mu    sync.Mutex
	claim *corev1.PersistentVolumeClaim // nil if it was deleted
	// patches are the patches that were applied.
	patches []string
	// read and write are called before the real operation, and can fail it; nil does nothing. Their argument counts from 1.
	read, write   func(n int) error
	reads, writes int
	// lost is returned by a write that was done.
	lost error
}

func newClaims(finalizers ...string) *fakeClaims {
	return &fakeClaims{claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: golden.Namespace, Name: golden.Name, UID: "uid-1", ResourceVersion: "1", Finalizers: finalizers,
		Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
	}}}
}

func gone() error {
	return apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), golden.Name)
}

func conflict() error {
	return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), golden.Name, errors.New("modified"))
}

// call counts a call, and calls its hook without the lock, so that the hook may change the claim.
func (f *fakeClaims) call(count *int, hook func(n int) error) error {
	f.mu.Lock()
	*count++
	n := *count
	f.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(n)
}

func (f *fakeClaims) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	if err := errors.Join(ctx.Err(), f.call(&f.reads, f.read)); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claim == nil || (Ref{namespace, name}) != golden {
		return nil, gone()
	}
	return f.claim.DeepCopy(), nil
}

func (f *fakeClaims) PatchClaim(ctx context.Context, _, _ string, patch []byte) error {
	if err := errors.Join(ctx.Err(), f.call(&f.writes, f.write)); err != nil {
		return err
	}
	if err := f.apply(patch); err != nil {
		return err
	}
	return f.lost
}

func (f *fakeClaims) apply(patch []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claim == nil {
		return gone()
	}
	changed, err := merged(f.claim, patch)
	if err != nil {
		return err
	}
	if changed.ResourceVersion != f.claim.ResourceVersion {
		return conflict()
	}
	f.patches = append(f.patches, string(patch))
	f.set(changed)
	return nil
}

// change changes the claim as another client would.
func (f *fakeClaims) change(do func(*corev1.PersistentVolumeClaim)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.claim)
	f.set(f.claim)
}

func (f *fakeClaims) set(claim *corev1.PersistentVolumeClaim) {
	version, _ := strconv.Atoi(claim.ResourceVersion)
	claim.ResourceVersion = strconv.Itoa(version + 1)
	f.claim = claim
	if claim.DeletionTimestamp != nil && len(claim.Finalizers) == 0 {
		f.claim = nil
	}
}

// holders are the nonces that hold the claim, by the id of their record.
func (f *fakeClaims) holders() map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string][]string{}
	if f.claim != nil {
		for _, r := range Look(f.claim) {
			found[r.ID] = r.Nonces
		}
	}
	return found
}

// merged applies a JSON merge patch (RFC 7396).
func merged(claim *corev1.PersistentVolumeClaim, patch []byte) (*corev1.PersistentVolumeClaim, error) {
	text, err := json.Marshal(claim)
	if err != nil {
		return nil, err
	}
	var target, change map[string]any
	if err := errors.Join(json.Unmarshal(text, &target), json.Unmarshal(patch, &change)); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(merge(target, change)); err != nil {
		return nil, err
	}
	var changed corev1.PersistentVolumeClaim
	return &changed, json.Unmarshal(text, &changed)
}

func merge(target, change map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for key, value := range change {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			child, _ := target[key].(map[string]any)
			target[key] = merge(child, value)
		default:
			target[key] = value
		}
	}
	return target
}

// refusing returns a ResolveConflict that must not be called.
func refusing(t *testing.T) ResolveConflict {
	t.Helper()
	return func(context.Context) (HolderState, error) {
		t.Helper()
		t.Error("it was contested")
		return HolderState{}, nil
	}
}

// snapshot returns a copy of the claim.
func (f *fakeClaims) snapshot() *corev1.PersistentVolumeClaim {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claim.DeepCopy()
}
