package reservation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// contentKey is the name of the annotation that says what a claim's volume was filled with.
const contentKey = "virtclaim.io/content"

// Content is what the volume of a claim was filled with.
type Content struct {
	// Binding is the id of the binding by which it was filled.
	Binding string `json:"binding"`
	// Generation identifies the content.
	Generation string `json:"generation"`
	// Digest is that of the content; empty if it is not known.
	Digest string `json:"digest,omitempty"`
	// Filling is whether the volume has only a part of the content.
	Filling  bool   `json:"filling,omitempty"`
	ClaimUID string `json:"claimUID"`
}

// ContentOf is the record of a claim's content; the zero value without one. One for the UID of another claim came with a backup or a copy.
// The error is newer.Err.
func ContentOf(claim *corev1.PersistentVolumeClaim) (c Content, err error) {
	text := []byte(claim.Annotations[contentKey])
	if err := newer.JSON(text); err != nil {
		return Content{}, fmt.Errorf("the record %s of the %s can't be read: %w", contentKey, refOf(claim), err)
	}
	if json.Unmarshal(text, &c) != nil || c.ClaimUID != string(claim.UID) {
		return Content{}, nil //nolint:nilerr // what is no record says nothing
	}
	return c, nil
}

// RecordContent records what a claim's volume is being, or was, filled with. The claim must be held by the binding's instance.
func RecordContent(ctx context.Context, claims Claims, ref Ref, by volume.BindingRef, c Content) error {
	return changeContent(ctx, claims, ref, func(claim *corev1.PersistentVolumeClaim) (*string, error) {
		r, _ := find(Look(claim), by.ID)
		if !slices.ContainsFunc(r.Nonces, func(nonce string) bool { return volume.InstanceOf(nonce) == by.Instance }) {
			return nil, fmt.Errorf("the %s is not reserved for the binding %s any more. Apply that again", ref, by.ID)
		}
		if _, err := ContentOf(claim); err != nil {
			return nil, err
		}
		c.Binding, c.ClaimUID = by.ID, string(claim.UID)
		text, _ := json.Marshal(c) // strings can always be marshaled
		value := string(text)
		return &value, nil
	})
}

// ForgetContent removes the record of the content that was filled by a binding. It is no error if there is none, or the claim is gone.
func ForgetContent(ctx context.Context, claims Claims, ref Ref, by volume.BindingRef) error {
	err := changeContent(ctx, claims, ref, func(claim *corev1.PersistentVolumeClaim) (*string, error) {
		is, err := ContentOf(claim)
		if value, ok := claim.Annotations[contentKey]; ok && is.Binding != by.ID {
			return &value, err
		}
		return nil, err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// changeContent writes another annotation; nil removes it.
func changeContent(ctx context.Context, claims Claims, ref Ref, next func(*corev1.PersistentVolumeClaim) (*string, error)) error {
	return retry(ctx, outage, func(ctx context.Context) (bool, error) {
		claim, err := claims.Claim(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return isTransient(err), err
		}
		value, err := next(claim)
		if err != nil {
			return false, err
		}
		before, ok := claim.Annotations[contentKey]
		if ok == (value != nil) && (value == nil || *value == before) {
			return false, nil
		}
		p := newPatch(claim)
		p.Metadata.Annotations[contentKey] = value
		err = p.write(ctx, claims, "set reserve_claims = false")
		return isTransient(err), err
	})
}

// isFiller reports whether one of two bindings of an owner has filled the claim, and the other one only reads it.
func (c Content) isFiller(b Binding, r Record) bool {
	if b.Owner == "" || r.Owner != b.Owner || c.Filling || c.Binding == "" {
		return false
	}
	return r.ID == c.Binding && r.Mode == volume.WriteExclusive && b.Mode == volume.ReadShared ||
		b.ID == c.Binding && b.Mode == volume.WriteExclusive && r.Mode == volume.ReadShared
}
