package claim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// PreviewReader is what Preview needs: it reads no secret, not even its version.
type PreviewReader interface {
	ObjectReader
	ClassReader
}

// Previewed is what can be told of a claim without holding it.
type Previewed struct {
	// Claim is shared where the reader's objects are: it must not be changed.
	Claim *corev1.PersistentVolumeClaim
	// Volume is as in source.Resolved, but without Auth, which takes the secret; nil when Wrong is set.
	Volume *volume.Volume
	// Secret is where a binding would take the credentials from; nil when the storage asks for none.
	Secret *source.SecretRef
	// Warnings are whole sentences for the user.
	Warnings []string
	// Wrong is why the claim can't be bound, now or for good; nil when that depends on the binding only: on its access mode,
	// its hosts, and what is in the secret.
	Wrong error
}

// Preview looks once at a claim that nobody need want to use. Whatever the claim is like, that is an answer; only a claim
// that does not exist and a cluster that can't be asked are errors, which keep what apierrors looks for.
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
		return location{}, pending(ctx, r, claim)
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
