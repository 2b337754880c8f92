package pods

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

// Holder is a pod of the volume image that does nothing: for its sake, Kubernetes attaches a claim to a node, and kubelet mounts it there.
type Holder struct {
	Cluster                Cluster
	Namespace, Claim, Node string
	// Volume is the UID of the claim's PersistentVolume, and Host the key of the host that is the node.
	Volume, Host string
	// Image is the reference of the volume image.
	Image string
	// Binding is the id of the binding that has the pod.
	Binding string
}

// HolderLabel is the label of a holder with the id of its binding.
const HolderLabel = "virtclaim.io/binding"

func (p Holder) managed() Pod {
	sum := sha256.Sum256([]byte(p.Binding + "\x00" + p.Volume + "\x00" + p.Host))
	return Pod{
		Cluster: p.Cluster, Namespace: p.Namespace, Name: "virtclaim-hold-" + hex.EncodeToString(sum[:8]), Label: HolderLabel,
		Owner: p.Binding, Container: container,
	}
}

// Name is the pod's name.
func (p Holder) Name() string { return p.managed().Name }

// Start makes the pod unless it is on the node, and has not ended. Await waits for it.
func (p Holder) Start(ctx context.Context) (isNew bool, err error) {
	m := p.managed()
	pod, err := m.Cluster.Pod(ctx, p.Namespace, m.Name)
	switch {
	case err == nil && m.Check(pod) != nil:
		return false, m.Check(pod)
	case err == nil && !m.Owns(pod):
		return false, fmt.Errorf("the %s was not made by this binding: remove it", m)
	case err == nil && pod.DeletionTimestamp == nil && !HasEnded(pod) && pod.Spec.NodeName == p.Node:
		return false, nil
	case err != nil && !apierrors.IsNotFound(err):
		return false, err
	}
	isNew = err != nil
	if err := m.Remove(ctx); err != nil {
		return false, err
	}
	_, err = m.Cluster.CreatePod(ctx, p.pod())
	return isNew, err
}

// Await waits until the pod has the claim, and returns the pod's UID.
func (p Holder) Await(ctx context.Context) (uid string, err error) {
	m := p.managed()
	pod, err := m.Cluster.Pod(ctx, p.Namespace, m.Name)
	if err == nil {
		err = m.AwaitReady(ctx, pod)
	}
	if err != nil {
		return "", err
	}
	return string(pod.UID), nil
}

// Remove removes the pod, and waits until its container has ended.
func (p Holder) Remove(ctx context.Context) error { return p.managed().Remove(ctx) }

// pod tolerates what nodes are tainted with, and is not scheduled: it must be on this node, as long as the binding is there. No file
// changes for it, also not its group.
func (p Holder) pod() *corev1.Pod {
	meta := p.managed().Meta()
	meta.Labels[commandLabel] = "hold"
	few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: p.Node, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(endSeconds)),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: p.Image, Args: []string{"hold"},
			SecurityContext: &corev1.SecurityContext{
				ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources:    corev1.ResourceRequirements{Requests: few, Limits: few},
			VolumeMounts: []corev1.VolumeMount{{Name: "volume", MountPath: podwire.Path, ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{
			Name:         "volume",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Claim}},
		}},
	}}
}
