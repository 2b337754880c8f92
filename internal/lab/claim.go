package lab

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimSpec describes a claim and the volume that it is bound to.
type ClaimSpec struct {
	Namespace, Name string
	// LUN is the volume's storage, unless Source has another one.
	LUN    LUN
	Source *corev1.PersistentVolumeSource
	// Size is in bytes; 0 means the LUN's.
	Size int64
	// NodeAffinity limits the nodes that reach the volume; nil means all.
	NodeAffinity *corev1.VolumeNodeAffinity
	// Filesystem selects volumeMode Filesystem instead of Block.
	Filesystem bool
	// AccessModes are both the volume's and the claim's; none means ReadWriteMany and ReadOnlyMany.
	AccessModes []corev1.PersistentVolumeAccessMode
	// Class is the name of a storage class; empty means none.
	Class string
	// Initiator is the initiator name that the target requires; empty means any.
	Initiator string
}

// VolumeName is the name of the claim's PersistentVolume.
func (s ClaimSpec) VolumeName() string { return s.Namespace + "-" + s.Name }

// SecretName is the name of the secret with the credentials for CHAP, in the claim's namespace.
func (s ClaimSpec) SecretName() string { return s.Name + "-chap" }

// AddClaim creates a claim with its namespace, volume and, for CHAP, secret, and waits until it is bound. For other attributes, change the
// object that Volume or Claim returns and create it with the cluster's client.
func (l *Lab) AddClaim(ctx context.Context, spec ClaimSpec) error {
	if err := l.AddNamespace(ctx, spec.Namespace); err != nil {
		return err
	}
	if spec.LUN.CHAP {
		if err := l.AddCHAPSecret(ctx, spec.Namespace, spec.SecretName()); err != nil {
			return err
		}
	}
	core := l.Cluster.Client.CoreV1()
	if _, err := core.PersistentVolumes().Create(ctx, l.Volume(spec), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make PersistentVolume %s: %w", spec.VolumeName(), err)
	}
	if _, err := core.PersistentVolumeClaims(spec.Namespace).Create(ctx, l.Claim(spec), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make PersistentVolumeClaim %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	return l.AwaitBound(ctx, spec.Namespace, spec.Name)
}

// RemoveClaim removes the objects that AddClaim created, except for the namespace, and waits until they are gone. Objects that are already
// gone are no error.
func (l *Lab) RemoveClaim(ctx context.Context, spec ClaimSpec) error {
	core := l.Cluster.Client.CoreV1()
	// A volume waits for its claim.
	objects := []object{
		{"persistentvolumeclaims", spec.Namespace, spec.Name, core.PersistentVolumeClaims(spec.Namespace).Delete},
		{"persistentvolumes", "", spec.VolumeName(), core.PersistentVolumes().Delete},
	}
	if spec.LUN.CHAP {
		objects = append(objects, object{"secrets", spec.Namespace, spec.SecretName(), core.Secrets(spec.Namespace).Delete})
	}
	return l.remove(ctx, objects...)
}

// Volume is the PersistentVolume for a claim: no other claim can be bound to it.
func (l *Lab) Volume(spec ClaimSpec) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: spec.VolumeName()},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource:        l.volumeSource(spec),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			Capacity:                      Storage(spec.size()),
			AccessModes:                   spec.accessModes(),
			VolumeMode:                    spec.volumeMode(),
			NodeAffinity:                  spec.NodeAffinity,
			StorageClassName:              spec.Class,
			ClaimRef:                      &corev1.ObjectReference{Namespace: spec.Namespace, Name: spec.Name},
		},
	}
}

func (l *Lab) volumeSource(spec ClaimSpec) corev1.PersistentVolumeSource {
	if spec.Source != nil {
		return *spec.Source
	}
	iscsi := &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: l.Target.Portal, IQN: spec.LUN.IQN, Lun: int32(spec.LUN.Number),
	}
	if spec.Initiator != "" {
		iscsi.InitiatorName = &spec.Initiator
	}
	if spec.LUN.CHAP {
		iscsi.SessionCHAPAuth = true
		iscsi.SecretRef = &corev1.SecretReference{Namespace: spec.Namespace, Name: spec.SecretName()}
	}
	return corev1.PersistentVolumeSource{ISCSI: iscsi}
}

// Claim is the PersistentVolumeClaim; it can be bound to no other volume.
func (l *Lab) Claim(spec ClaimSpec) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName:       spec.VolumeName(),
			AccessModes:      spec.accessModes(),
			VolumeMode:       spec.volumeMode(),
			StorageClassName: &spec.Class,
			Resources:        corev1.VolumeResourceRequirements{Requests: Storage(spec.size())},
		},
	}
}

func (s ClaimSpec) size() int64 { return cmp.Or(s.Size, s.LUN.Size) }

func (s ClaimSpec) accessModes() []corev1.PersistentVolumeAccessMode {
	if len(s.AccessModes) == 0 {
		return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
	}
	return s.AccessModes
}

func (s ClaimSpec) volumeMode() *corev1.PersistentVolumeMode {
	mode := corev1.PersistentVolumeBlock
	if s.Filesystem {
		mode = corev1.PersistentVolumeFilesystem
	}
	return &mode
}

// Storage is a number of bytes as Kubernetes' resource list.
func Storage(bytes int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}
}
