package reservation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Read returns the records on a claim; nil if the claim is gone or was recreated. While the API server is unavailable it retries until ctx
// ends.
func Read(ctx context.Context, claims Claims, ref Ref, claimUID string) (records []Record, err error) {
	err = retry(ctx, forever, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err == nil && string(claim.UID) == claimUID {
			records = append([]Record{}, Look(claim)...)
		}
		return isTransient(err), err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return records, err
}

// Release removes a binding's nonce from its claim, the record with the last nonce, and the finalizer with the last record, so that a claim
// that is being deleted can go. It is no error if the claim is gone or was recreated, or if the record is gone or belongs to another
// binding. While the API server is unavailable it retries until ctx ends.
func Release(ctx context.Context, claims Claims, ref Ref, id, nonce, claimUID string) error {
	return release(ctx, claims, ref, claimUID, holder{id: id, nonce: nonce})
}

// End is Release for a binding that was created completely. It also removes the nonces before its own: those bindings were replaced by it,
// or belong to an interrupted apply and are in no state.
func End(ctx context.Context, claims Claims, ref Ref, id, nonce, claimUID string) error {
	return release(ctx, claims, ref, claimUID, holder{id: id, nonce: nonce, ends: true})
}

// holder is a binding that releases a claim.
type holder struct {
	id, nonce string
	// ends is whether the nonces before its own are removed, too.
	ends bool
}

// remaining returns the nonces that remain.
func (h holder) remaining(nonces []string) []string {
	n := slices.Index(nonces, h.nonce)
	if h.ends {
		return nonces[n+1:]
	}
	return slices.Delete(slices.Clone(nonces), n, n+1)
}

func release(ctx context.Context, claims Claims, ref Ref, claimUID string, h holder) error {
	err := retry(ctx, forever, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return isTransient(err), err
		}
		if string(claim.UID) != claimUID {
			return false, nil
		}
		p, err := releasing(claim, h)
		if err != nil {
			return false, err
		}
		err = p.write(ctx, claims, "have it released by a user with that permission:\n  "+p.command())
		return isTransient(err), err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("the %s may still be reserved for the binding %s: %w", ref, h.id, err)
}

// releasing returns the patch that removes a holder from a claim.
func releasing(claim *corev1.PersistentVolumeClaim, h holder) (*patch, error) {
	p, records := newPatch(claim), Look(claim)
	mine, ok := find(records, h.id)
	if ok && mine.Unreadable != nil {
		return nil, heldError(claim, "", []Record{mine}) // it may belong to another binding
	}
	if slices.Contains(mine.Nonces, h.nonce) {
		if mine.Nonces = h.remaining(mine.Nonces); len(mine.Nonces) > 0 {
			p.put(mine)
			return p, nil
		}
		p.remove(h.id)
		records = slices.DeleteFunc(records, func(r Record) bool { return r.ID == h.id })
	}
	// This is done also if the record was gone before: a finalizer without a record would keep the claim forever.
	if len(records) == 0 {
		p.removeFinalizer()
	}
	return p, nil
}
