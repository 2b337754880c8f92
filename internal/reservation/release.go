package reservation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Read gives the records on a claim; nil when it is gone or is another one by now. It asks until ctx ends, however long the
// API server does not answer.
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

// Release takes a binding's nonce off its claim, the record with the last nonce, and the finalizer with the last record:
// a claim that is being deleted goes then. A claim that is gone or is another one by now, and a record that is gone or is
// another's, are fine. It asks until ctx ends, however long the API server does not answer.
func Release(ctx context.Context, claims Claims, ref Ref, id, nonce, claimUID string) error {
	return release(ctx, claims, ref, claimUID, holder{id: id, nonce: nonce})
}

// End is Release for a binding that was, instead of one that never came to be. What came before it goes, too: it has
// replaced that, or that was of an apply that was interrupted, so that no state has it.
func End(ctx context.Context, claims Claims, ref Ref, id, nonce, claimUID string) error {
	return release(ctx, claims, ref, claimUID, holder{id: id, nonce: nonce, ends: true})
}

// holder is a binding that gives a claim up.
type holder struct {
	id, nonce string
	// ends tells that its predecessors do so with it.
	ends bool
}

// heirs are those that hold the claim after it.
func (h holder) heirs(nonces []string) []string {
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
		err = p.write(ctx, claims, "have it released by somebody who may:\n  "+p.command())
		return isTransient(err), err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("the %s may still be reserved for the binding %s: %w", ref, h.id, err)
}

// releasing is the change that takes a holder off a claim.
func releasing(claim *corev1.PersistentVolumeClaim, h holder) (*patch, error) {
	p, records := newPatch(claim), Look(claim)
	mine, ok := find(records, h.id)
	if ok && mine.Unreadable != nil {
		return nil, heldError(claim, "", []Record{mine}) // nobody knows whether it is ours
	}
	if slices.Contains(mine.Nonces, h.nonce) {
		if mine.Nonces = h.heirs(mine.Nonces); len(mine.Nonces) > 0 {
			p.put(mine)
			return p, nil
		}
		p.remove(h.id)
		records = slices.DeleteFunc(records, func(r Record) bool { return r.ID == h.id })
	}
	// Also when the record was gone before: a finalizer that no record asks for would keep the claim for ever.
	if len(records) == 0 {
		p.removeFinalizer()
	}
	return p, nil
}
