package reservation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patch is a JSON merge patch of a claim.
type patch struct {
	Metadata patchMetadata `json:"metadata"`

	claim *corev1.PersistentVolumeClaim
}

// patchMetadata has a UID or a resourceVersion: the API server refuses to patch another claim, or another version of it.
type patchMetadata struct {
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Annotations that are null are removed.
	Annotations map[string]*string `json:"annotations,omitempty"`
	// Finalizers are all of them, because a merge patch has no way to name one.
	Finalizers *[]string `json:"finalizers,omitempty"`
}

func newPatch(claim *corev1.PersistentVolumeClaim) *patch {
	return &patch{
		Metadata: patchMetadata{ResourceVersion: claim.ResourceVersion, Annotations: map[string]*string{}},
		claim:    claim,
	}
}

// put writes a record, in place of the one that its id has on the claim.
func (p *patch) put(r Record) {
	if key, value := keyPrefix+r.ID, r.value(); p.claim.Annotations[key] != value {
		p.Metadata.Annotations[key] = &value
	}
}

func (p *patch) remove(id string) { p.Metadata.Annotations[keyPrefix+id] = nil }

func (p *patch) addFinalizer() {
	if !slices.Contains(p.claim.Finalizers, Finalizer) {
		finalizers := append(slices.Clone(p.claim.Finalizers), Finalizer)
		p.Metadata.Finalizers = &finalizers
	}
}

// removeFinalizer leaves those of others, such as Kubernetes' own, which waits for pods.
func (p *patch) removeFinalizer() {
	if slices.Contains(p.claim.Finalizers, Finalizer) {
		finalizers := slices.DeleteFunc(slices.Clone(p.claim.Finalizers), func(f string) bool { return f == Finalizer })
		p.Metadata.Finalizers = &finalizers
	}
}

func (p *patch) json() []byte {
	text, _ := json.Marshal(p) // which can't fail for strings
	return text
}

// write changes the claim, if there is anything to change.
func (p *patch) write(ctx context.Context, claims Claims) error {
	if len(p.Metadata.Annotations) == 0 && p.Metadata.Finalizers == nil {
		return nil
	}
	return explain(claims.PatchClaim(ctx, p.claim.Namespace, p.claim.Name, p.json()))
}

// explain adds what to do to the API server's refusals that a user can mend.
func explain(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; allow these credentials to patch persistentvolumeclaims, "+
			"or set reserve_claims = false, and see to it yourself that nobody else uses the claim", err)
	case apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeTooLong):
		return fmt.Errorf("there is no room for another record: all annotations of the claim together may have 256 KiB; "+
			"remove those that nobody needs: %w", err)
	}
	return err
}
