package reservation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// command is what makes the change by hand.
func (p *patch) command() string {
	return strings.Join([]string{
		"kubectl patch pvc", quote(p.claim.Name), "-n", quote(p.claim.Namespace), "--type=merge -p", quote(string(p.json())),
	}, " ")
}

// write changes the claim, if there is anything to change. orElse is what else helps credentials that may not.
func (p *patch) write(ctx context.Context, claims Claims, orElse string) error {
	if len(p.Metadata.Annotations) == 0 && p.Metadata.Finalizers == nil {
		return nil
	}
	return explain(claims.PatchClaim(ctx, p.claim.Namespace, p.claim.Name, p.json()), orElse)
}

// explain adds what to do to the API server's refusals that a user can mend.
func explain(err error, orElse string) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; allow these credentials to patch persistentvolumeclaims, or %s", err, orElse)
	case apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeTooLong):
		return fmt.Errorf("there is no room for another record: all annotations of the claim together may have 256 KiB; "+
			"remove those that nobody needs: %w", err)
	}
	return err
}
