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

// patchMetadata has a UID or a resourceVersion, so that the API server refuses to patch another claim, or another version of it.
type patchMetadata struct {
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Annotations with the value null are removed.
	Annotations map[string]*string `json:"annotations,omitempty"`
	// Finalizers is the complete list, because a merge patch can't change a single one.
	Finalizers *[]string `json:"finalizers,omitempty"`
}

func newPatch(claim *corev1.PersistentVolumeClaim) *patch {
	return &patch{
		Metadata: patchMetadata{ResourceVersion: claim.ResourceVersion, Annotations: map[string]*string{}},
		claim:    claim,
	}
}

// put writes a record, and replaces one with the same id.
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

// removeFinalizer keeps all other finalizers, such as that of Kubernetes, which waits for pods.
func (p *patch) removeFinalizer() {
	if slices.Contains(p.claim.Finalizers, Finalizer) {
		finalizers := slices.DeleteFunc(slices.Clone(p.claim.Finalizers), func(f string) bool { return f == Finalizer })
		p.Metadata.Finalizers = &finalizers
	}
}

func (p *patch) json() []byte {
	text, _ := json.Marshal(p) // strings can always be marshaled
	return text
}

// command returns the kubectl command for the same patch.
func (p *patch) command() string {
	return strings.Join([]string{
		"kubectl patch pvc", quote(p.claim.Name), "-n", quote(p.claim.Namespace), "--type=merge -p", quote(string(p.json())),
	}, " ")
}

// write patches the claim, if there is a change. orElse is the alternative for credentials that must not patch it.
func (p *patch) write(ctx context.Context, claims Claims, orElse string) error {
	if len(p.Metadata.Annotations) == 0 && p.Metadata.Finalizers == nil {
		return nil
	}
	return explain(claims.PatchClaim(ctx, p.claim.Namespace, p.claim.Name, p.json()), orElse)
}

// explain adds the remedy to those errors of the API server that a user can resolve.
func explain(err error, orElse string) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; allow these credentials to patch persistentvolumeclaims, or %s", err, orElse)
	case apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseTypeTooLong):
		return fmt.Errorf("there is no room for another record: all annotations of the claim together may have 256 KiB; "+
			"remove those that are not needed: %w", err)
	}
	return err
}
