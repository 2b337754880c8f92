// Package reservation keeps records on a claim of the bindings that hold it, and in which mode. Kubernetes is the lock service: each
// binding has an annotation on the PersistentVolumeClaim, and one finalizer protects the claim while there is any. All patches require the
// version of the claim that was read, so that one of two concurrent reservations wins.
package reservation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Claims reads and patches claims. Errors work with apierrors.IsNotFound and the like.
type Claims interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// PatchClaim applies a JSON merge patch.
	PatchClaim(ctx context.Context, namespace, name string, patch []byte) error
}

// Ref names a claim.
type Ref struct{ Namespace, Name string }

func (r Ref) String() string { return "PersistentVolumeClaim " + r.Namespace + "/" + r.Name }

// Binding is a binding that reserves a claim.
type Binding struct {
	// ID is the same for all bindings of one owner and name.
	ID string
	// Owner is empty for a configuration without one, whose bindings all have ids of their own.
	Owner, Name string
	// Nonce is random for each binding; it distinguishes two bindings of the same owner and name.
	Nonce string
	Mode  volume.AccessMode
	// ClaimUID is the UID of the claim that was resolved.
	ClaimUID string
	// Remade is whether the claim was recreated and the binding has not adopted the new one yet.
	Remade bool
	// InState is whether the binding has held the claim before: a record of another nonce is then not one of its predecessors.
	InState bool
}

// Use is who uses the storage of a claim.
type Use int

const (
	// Foreign means that machines of other owners use it. It is the zero value, so that an answer without a Use refuses the reservation.
	Foreign Use = iota
	// Ours means that only machines of the same owner use it.
	Ours
	// Free means that no machine uses it.
	Free
)

// HolderState is the state of another binding of the same owner and name.
type HolderState struct {
	Use Use
	// Users are the machines, such as "domain web on host-a", for the error.
	Users []string
	// Instances are the machines by the instance (volume.InstanceOf) of the binding from which they have the storage, as far as known.
	Instances map[string][]string
}

// ResolveConflict determines the state of another binding of the same owner and name: was its apply interrupted, or is it in use?
type ResolveConflict func(ctx context.Context) (HolderState, error)

// Reserve writes a binding's record on its claim, and updates it if its mode has changed: no other binding can reserve the claim between
// the old mode and the new. If the record has another nonce, resolve is called: the binding joins a record that no machine uses, or only
// machines of the same owner. Later nonces, of an interrupted apply, are removed by the update of this binding's own record.
//
// After a HeldError, ForeignError, TwoStatesError, DeletingError or OtherClaimError nothing was written. After any other error the record
// may exist nevertheless, because the API server's answer was lost: call Release to remove it.
func Reserve(ctx context.Context, claims Claims, ref Ref, b Binding, resolve ResolveConflict) error {
	return retry(ctx, outage, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return isTransient(err), err
		}
		if err := b.check(claim); err != nil {
			return false, err
		}
		record, err := b.resolveRecord(ctx, claim, resolve)
		if err != nil {
			return false, err
		}
		p := newPatch(claim)
		p.put(record)
		p.addFinalizer()
		err = p.write(ctx, claims, "set reserve_claims = false, and make sure yourself that the claim has no other users")
		return isTransient(err), err
	})
}

// CheckForeign refuses, in a plan, a claim that the binding could not reserve whatever the apply releases before: one that is being
// deleted, or that is held by bindings of other owners than its own and former.
func (b Binding) CheckForeign(claim *corev1.PersistentVolumeClaim, former string) error {
	b.ClaimUID = string(claim.UID)
	if err := b.check(claim); err != nil {
		return err
	}
	against := slices.DeleteFunc(b.conflicting(claim), func(r Record) bool {
		return r.Unreadable == nil && (r.Owner == b.Owner || r.Owner == former)
	})
	if len(against) > 0 {
		return heldError(claim, b.Mode, against)
	}
	return nil
}

// check refuses a claim that can't be reserved.
func (b Binding) check(claim *corev1.PersistentVolumeClaim) error {
	switch {
	case string(claim.UID) != b.ClaimUID:
		return &OtherClaimError{Claim: refOf(claim), Want: b.ClaimUID, Have: string(claim.UID)}
	case claim.DeletionTimestamp != nil:
		return &DeletingError{Claim: refOf(claim), Since: claim.DeletionTimestamp.Time, Finalizers: claim.Finalizers}
	}
	return nil
}

// resolveRecord returns the record for b, or the error with its conflicting holders.
func (b Binding) resolveRecord(ctx context.Context, claim *corev1.PersistentVolumeClaim, resolve ResolveConflict) (Record, error) {
	if against := b.conflicting(claim); len(against) > 0 {
		return Record{}, heldError(claim, b.Mode, against)
	}
	mine := Record{ID: b.ID, Owner: b.Owner, Name: b.Name, Nonces: []string{b.Nonce}, Mode: b.Mode, ClaimUID: b.ClaimUID, Remade: b.Remade}
	there, ok := find(Look(claim), b.ID)
	if !ok {
		return mine, nil
	}
	if n := slices.Index(there.Nonces, b.Nonce); n >= 0 {
		return b.outlast(ctx, claim, there, n, resolve)
	}
	state, err := resolveConflict(ctx, claim, there, resolve)
	switch {
	case err != nil:
		return Record{}, err
	case b.InState:
		return Record{}, twoStatesError(claim, there, state.of(there.Nonces))
	case state.Use == Ours && there.Mode != b.Mode:
		return Record{}, heldError(claim, b.Mode, []Record{there}) // its machines run with that mode
	case state.Use != Foreign:
		// This applies also if no machine uses it: the other binding may be in state, about to be replaced, and this apply may still fail.
		mine.Nonces = append(slices.Clone(there.Nonces), b.Nonce)
		return mine, nil
	default:
		return Record{}, foreignError(claim, there, state.Users)
	}
}

// outlast returns the record for b, whose nonce is the nth on it. A binding that is still updated has no successor: the later nonces are of
// an interrupted apply, unless machines have the storage from them. Then they are in another state.
func (b Binding) outlast(ctx context.Context, claim *corev1.PersistentVolumeClaim, there Record, n int,
	resolve ResolveConflict,
) (Record, error) {
	mine := there
	mine.Mode, mine.Nonces, mine.Remade = b.Mode, there.Nonces[:n+1], b.Remade
	if n+1 == len(there.Nonces) {
		return mine, nil
	}
	state, err := resolveConflict(ctx, claim, there, resolve)
	if err != nil {
		return Record{}, err
	}
	if users := state.of(there.Nonces[n+1:]); len(users) > 0 {
		return Record{}, twoStatesError(claim, there, users)
	}
	return mine, nil
}

func resolveConflict(ctx context.Context, claim *corev1.PersistentVolumeClaim, there Record, resolve ResolveConflict) (HolderState, error) {
	state, err := resolve(ctx)
	if err != nil {
		err = fmt.Errorf("the %s is reserved for another %s, and who uses it could not be found out: %w", refOf(claim), there, err)
	}
	return state, err
}

// of returns the machines that have the storage from the bindings with those nonces.
func (s HolderState) of(nonces []string) (users []string) {
	for _, nonce := range nonces {
		users = append(users, s.Instances[volume.InstanceOf(nonce)]...)
	}
	return users
}

// conflicting returns the records on a claim that exclude b. Shared access must be in the same mode, unless one binding has filled the
// claim for the other, an unreadable record may have any mode, and a record with b's id must be of the same owner and name, which needs an
// owner.
func (b Binding) conflicting(claim *corev1.PersistentVolumeClaim) (against []Record) {
	content, _ := ContentOf(claim) // one that can't be read lets none share the claim
	for _, r := range Look(claim) {
		sharing := r.Mode == b.Mode && b.Mode != volume.WriteExclusive || content.isFiller(b, r)
		if r.ID == b.ID {
			sharing = slices.Contains(r.Nonces, b.Nonce) || b.Owner != "" && r.Owner == b.Owner && r.Name == b.Name
		}
		if r.Unreadable != nil || !sharing {
			against = append(against, r)
		}
	}
	return against
}

func refOf(claim *corev1.PersistentVolumeClaim) Ref { return Ref{claim.Namespace, claim.Name} }
