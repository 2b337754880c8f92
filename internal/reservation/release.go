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
	err := retry(ctx, forever, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return isTransient(err), err
		}
		if string(claim.UID) != claimUID {
			return false, nil
		}
		p, err := releasing(claim, id, nonce)
		if err != nil {
			return false, err
		}
		err = p.write(ctx, claims, "have it released by somebody who may:\n  "+p.command())
		return isTransient(err), err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("the %s may still be reserved for the binding %s: %w", ref, id, err)
}

// releasing is the change that takes a nonce off a claim.
func releasing(claim *corev1.PersistentVolumeClaim, id, nonce string) (*patch, error) {
	p, records := newPatch(claim), Look(claim)
	mine, ok := find(records, id)
	if ok && mine.Unreadable != nil {
		return nil, heldError(claim, "", []Record{mine}) // nobody knows whether it is ours
	}
	if slices.Contains(mine.Nonces, nonce) {
		mine.Nonces = slices.DeleteFunc(mine.Nonces, func(n string) bool { return n == nonce })
		if len(mine.Nonces) > 0 {
			p.put(mine)
			return p, nil
		}
		p.remove(id)
		records = slices.DeleteFunc(records, func(r Record) bool { return r.ID == id })
	}
	// Also when the record was gone before: a finalizer that no record asks for would keep the claim for ever.
	if len(records) == 0 {
		p.removeFinalizer()
	}
	return p, nil
}
