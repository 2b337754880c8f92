// Package reservation keeps the record on a claim that says which bindings hold it, and for what. Kubernetes is the lock
// service: each binding has an annotation on the PersistentVolumeClaim, and one finalizer keeps the claim while there is
// any. All of it is written against the version of the claim that was read, so that of two that want the same one wins.
package reservation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Claims are read and written. Errors keep what apierrors.IsNotFound and its kin look for.
type Claims interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// PatchClaim applies a JSON merge patch.
	PatchClaim(ctx context.Context, namespace, name string, patch []byte) error
}

// Ref names a claim.
type Ref struct{ Namespace, Name string }

func (r Ref) String() string { return "PersistentVolumeClaim " + r.Namespace + "/" + r.Name }

// Binding is who wants a claim, and for what.
type Binding struct {
	// ID is the same for all bindings of one owner and name.
	ID string
	// Owner is empty for a configuration without one, whose bindings all have ids of their own.
	Owner, Name string
	// Nonce is random for each binding; it tells two of the same owner and name apart.
	Nonce string
	Mode  volume.AccessMode
	// ClaimUID is that of the claim that was resolved.
	ClaimUID string
	// Remade tells that the claim was made again, and that the binding has not gone on with it yet.
	Remade bool
	// InState tells that the binding has held the claim before: what is on record instead of it is no predecessor.
	InState bool
}

// Use is who uses the storage of a claim.
type Use int

const (
	// Foreign is a machine that is not the owner's. It comes first, so that an answer that was forgotten refuses.
	Foreign Use = iota
	// Ours are machines of the same owner only.
	Ours
	// Free is nobody.
	Free
)

// HolderState is what became of another binding of the same owner and name.
type HolderState struct {
	Use Use
	// Users are the machines, such as "domain web on host-a"; they are only for the error.
	Users []string
	// Instances are the machines by the instance (volume.InstanceOf) of the binding that they have the storage from, as far as
	// they tell.
	Instances map[string][]string
}

// ResolveConflict finds out what became of another binding of the same owner and name: was its apply interrupted, or does it live?
type ResolveConflict func(ctx context.Context) (HolderState, error)

// Reserve writes a binding's record on its claim, and once more when its mode has changed: nobody else can come between
// the old mode and the new. Who has it under another nonce is contested: a record that nobody stands behind, or only machines
// of the same owner, is joined. What an interrupted apply left of it goes with this binding's own.
//
// A HeldError, ForeignError, TwoStatesError, DeletingError or OtherClaimError is the claim's answer; nothing was written then. After any
// other error the record may be there all the same, because the API server's answer was lost: Release takes it back.
func Reserve(ctx context.Context, claims Claims, ref Ref, b Binding, contest ResolveConflict) error {
	return retry(ctx, outage, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return isTransient(err), err
		}
		if err := b.check(claim); err != nil {
			return false, err
		}
		record, err := b.settle(ctx, claim, contest)
		if err != nil {
			return false, err
		}
		p := newPatch(claim)
		p.put(record)
		p.addFinalizer()
		err = p.write(ctx, claims, "set reserve_claims = false, and see to it yourself that nobody else uses the claim")
		return isTransient(err), err
	})
}

// check refuses a claim that can't be held.
func (b Binding) check(claim *corev1.PersistentVolumeClaim) error {
	switch {
	case string(claim.UID) != b.ClaimUID:
		return &OtherClaimError{Claim: refOf(claim), Want: b.ClaimUID, Have: string(claim.UID)}
	case claim.DeletionTimestamp != nil:
		return &DeletingError{Claim: refOf(claim), Since: claim.DeletionTimestamp.Time, Finalizers: claim.Finalizers}
	}
	return nil
}

// settle is the record that b gets, or who stands against it.
func (b Binding) settle(ctx context.Context, claim *corev1.PersistentVolumeClaim, contest ResolveConflict) (Record, error) {
	records := Look(claim)
	if against := b.conflicting(records); len(against) > 0 {
		return Record{}, heldError(claim, b.Mode, against)
	}
	mine := Record{ID: b.ID, Owner: b.Owner, Name: b.Name, Nonces: []string{b.Nonce}, Mode: b.Mode, ClaimUID: b.ClaimUID, Remade: b.Remade}
	there, ok := find(records, b.ID)
	if !ok {
		return mine, nil
	}
	if n := slices.Index(there.Nonces, b.Nonce); n >= 0 {
		return b.outlast(ctx, claim, there, n, contest)
	}
	standing, err := contested(ctx, claim, there, contest)
	switch {
	case err != nil:
		return Record{}, err
	case b.InState:
		return Record{}, twoStatesError(claim, there, standing.of(there.Nonces))
	case standing.Use == Ours && there.Mode != b.Mode:
		return Record{}, heldError(claim, b.Mode, []Record{there}) // its machines run under that mode
	case standing.Use != Foreign:
		// Also where nobody uses it: the other one may be in state, about to be replaced, and this one may still fail.
		mine.Nonces = append(slices.Clone(there.Nonces), b.Nonce)
		return mine, nil
	default:
		return Record{}, foreignError(claim, there, standing.Users)
	}
}

// outlast is the record of b, the nth on it. A binding that still changes has no successor: what came after it was interrupted,
// unless machines have the storage from that. Then it is another state's.
func (b Binding) outlast(ctx context.Context, claim *corev1.PersistentVolumeClaim, there Record, n int, contest ResolveConflict) (Record, error) {
	mine := there
	mine.Mode, mine.Nonces, mine.Remade = b.Mode, there.Nonces[:n+1], b.Remade
	if n+1 == len(there.Nonces) {
		return mine, nil
	}
	standing, err := contested(ctx, claim, there, contest)
	if err != nil {
		return Record{}, err
	}
	if users := standing.of(there.Nonces[n+1:]); len(users) > 0 {
		return Record{}, twoStatesError(claim, there, users)
	}
	return mine, nil
}

func contested(ctx context.Context, claim *corev1.PersistentVolumeClaim, there Record, contest ResolveConflict) (HolderState, error) {
	standing, err := contest(ctx)
	if err != nil {
		err = fmt.Errorf("the %s is reserved for another %s, and who uses it could not be found out: %w", refOf(claim), there, err)
	}
	return standing, err
}

// of are the machines that have the storage from the bindings with those nonces.
func (s HolderState) of(nonces []string) (users []string) {
	for _, nonce := range nonces {
		users = append(users, s.Instances[volume.InstanceOf(nonce)]...)
	}
	return users
}

// conflicting are the records that b can't be held beside. Who shares must share in the same mode; who can't be read may hold
// anything; and under b's own id there is another binding of the same owner and name, or else it is not b's to contest.
func (b Binding) conflicting(records []Record) (against []Record) {
	for _, r := range records {
		sharing := r.Mode == b.Mode && b.Mode != volume.WriteExclusive
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
