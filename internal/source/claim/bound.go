package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

func refOf(claim *corev1.PersistentVolumeClaim) Ref { return Ref{claim.Namespace, claim.Name} }

func isPending(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase != corev1.ClaimBound && claim.Status.Phase != corev1.ClaimLost
}

// pending returns the error of a claim that is not bound, with the cause if it is known, and with what an apply does about it.
func (n Need) pending(ctx context.Context, r ClassReader, claim *corev1.PersistentVolumeClaim) error {
	class, err := delayingClass(ctx, r, claim)
	if err != nil {
		return err
	}
	if class == nil {
		return source.NotReadyf("the %s is Pending: it is not bound to a PersistentVolume yet%s", refOf(claim), ofClass(claim))
	}
	if err := n.checkSelecting(refOf(claim), class); err != nil {
		return err
	}
	selects := "a binding's apply selects the Kubernetes node of its first host for it"
	if len(n.Nodes) > 0 {
		selects = "the apply selects the Kubernetes node " + n.Nodes[0] + " for it"
	}
	return source.NotReadyf("the %s is Pending: its StorageClass %s has volumeBindingMode WaitForFirstConsumer, and %s", refOf(claim),
		class.Name, selects)
}

func ofClass(claim *corev1.PersistentVolumeClaim) string {
	if class := storagehelpers.GetPersistentVolumeClaimClass(claim); class != "" {
		return fmt.Sprintf(" (StorageClass %s)", class)
	}
	return " (no StorageClass)"
}

// boundVolume returns the PersistentVolume of a bound claim, if both reference each other.
func boundVolume(ctx context.Context, r ObjectReader, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	ref := refOf(claim)
	pv, err := r.Volume(ctx, claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return nil, source.Errorf("", "the %s is bound to the PersistentVolume %s, which does not exist: %w", ref, claim.Spec.VolumeName,
			err)
	}
	if err != nil {
		return nil, err
	}
	switch pv.Status.Phase {
	case corev1.VolumeBound:
	case corev1.VolumePending, "":
		return nil, source.NotReadyf("the PersistentVolume %s of the %s is not bound yet", pv.Name, ref)
	default:
		return nil, source.Errorf("", "the PersistentVolume %s of the %s is %s, not Bound%s", pv.Name, ref, pv.Status.Phase, because(pv))
	}
	if err := checkClaimRef(pv, claim); err != nil {
		return nil, err
	}
	if storagehelpers.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec) {
		return nil, source.Errorf("", "the volumeMode of the %s is %s, but that of its PersistentVolume %s is %s",
			ref, mode(claim.Spec.VolumeMode), pv.Name, mode(pv.Spec.VolumeMode))
	}
	return pv, nil
}

func because(pv *corev1.PersistentVolume) string {
	if pv.Status.Message == "" {
		return ""
	}
	return fmt.Sprintf(": %q", pv.Status.Message)
}

// checkClaimRef is stricter than Kubernetes' IsVolumeBoundToClaim: a claimRef without UID is a reservation, not a binding.
func checkClaimRef(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if storagehelpers.IsVolumeBoundToClaim(pv, claim) && pv.Spec.ClaimRef.UID == claim.UID {
		return nil
	}
	whose := "no claim"
	if c := pv.Spec.ClaimRef; c != nil {
		whose = fmt.Sprintf("the %s with UID %q", Ref{c.Namespace, c.Name}, c.UID)
	}
	return source.Errorf("", "the %s with UID %q names the PersistentVolume %s, but that one belongs to %s: "+
		"the claim was recreated or restored; delete it, make the volume available and create it again",
		refOf(claim), claim.UID, pv.Name, whose)
}

// mode returns m or Kubernetes' default.
func mode(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}
