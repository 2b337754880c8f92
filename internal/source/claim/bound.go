package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

func refOf(claim *corev1.PersistentVolumeClaim) Ref { return Ref{claim.Namespace, claim.Name} }

func isPending(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase != corev1.ClaimBound && claim.Status.Phase != corev1.ClaimLost
}

// pending returns the error of a claim that is not bound, with the cause if it is known.
func pending(ctx context.Context, r ClassReader, claim *corev1.PersistentVolumeClaim) error {
	if err := checkConsumer(ctx, r, claim); err != nil {
		return err
	}
	return source.NotReadyf("the %s is Pending: it is not bound to a PersistentVolume yet%s", refOf(claim), ofClass(claim))
}

func ofClass(claim *corev1.PersistentVolumeClaim) string {
	if class := storagehelpers.GetPersistentVolumeClaimClass(claim); class != "" {
		return fmt.Sprintf(" (StorageClass %s)", class)
	}
	return " (no StorageClass)"
}

// checkConsumer refuses a pending claim that Kubernetes binds only once a pod uses it, if no pod does. A class that does not exist, or that
// may not be read, is assumed to bind immediately.
func checkConsumer(ctx context.Context, r ClassReader, claim *corev1.PersistentVolumeClaim) error {
	name := storagehelpers.GetPersistentVolumeClaimClass(claim)
	if name == "" || claim.Spec.VolumeName != "" || storagehelpers.IsDelayBindingProvisioning(claim) {
		return nil
	}
	class, err := r.StorageClass(ctx, name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil
	}
	return source.NotReadyf("the %s is Pending and stays so: its StorageClass %s has volumeBindingMode WaitForFirstConsumer, "+
		"no pod uses the claim, and a virtual machine is no consumer; use a StorageClass with volumeBindingMode Immediate, name a "+
		"PersistentVolume in the claim's volumeName, or let a pod use the claim once",
		refOf(claim), name)
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
