package claim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// PreviewReader are the reads of Preview: it reads no secret, not even its version.
type PreviewReader interface {
	ObjectReader
	ClassReader
}

// Previewed is what is known of a claim without binding it.
type Previewed struct {
	// Claim may be shared with the reader's cache: it must not be changed.
	Claim *corev1.PersistentVolumeClaim
	// Volume is as in source.Resolved, but without Auth, which requires the secret; nil if Wrong is set.
	Volume *volume.Volume
	// Secret is where a binding would read the credentials from; nil if the storage needs none.
	Secret *source.SecretRef
	// Warnings are complete sentences for the user.
	Warnings []string
	// Wrong is why the claim can't be bound, now or permanently; nil if that depends only on the binding: on its access mode, its hosts,
	// and the data of the secret.
	Wrong error
}

// Preview reads a claim once, without a binding. A claim that can't be bound is no error but a result; only a claim that does not exist, or
// a cluster that can't be queried, is an error, which works with apierrors.
func Preview(ctx context.Context, r PreviewReader, ref Ref, options Options) (Previewed, error) {
	claim, err := r.Claim(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return Previewed{}, err
	}
	found, err := preview(ctx, r, claim, options)
	if isAnswer(err) {
		return Previewed{Claim: claim, Wrong: err}, nil
	}
	if err != nil {
		return Previewed{}, err
	}
	p := Previewed{Claim: claim, Volume: &found.volume, Warnings: slices.Concat(found.warnings, found.hints)}
	if found.login != nil {
		p.Secret = &found.login.Secret
	}
	return p, nil
}

func preview(ctx context.Context, r PreviewReader, claim *corev1.PersistentVolumeClaim, options Options) (location, error) {
	if err := checkStays(claim); err != nil {
		return location{}, err
	}
	if isPending(claim) {
		return location{}, Need{}.pending(ctx, r, claim)
	}
	if err := checkFilled(claim); err != nil {
		return location{}, err
	}
	pv, err := boundVolume(ctx, r, claim)
	if err != nil {
		return location{}, err
	}
	return request{pv, claim, options}.locate(ctx, r)
}
