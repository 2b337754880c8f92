package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// PodUse is a pod that mounts a claim and has not finished.
type PodUse struct {
	Name string
	// ReadOnly is whether no container of the pod can write to the claim.
	ReadOnly bool
	// Node is the pod's node; empty until it is scheduled.
	Node  string
	Phase corev1.PodPhase
	// Fills is whether the pod writes the content of the claim: it is one of virtclaim-volume, or of KubeVirt's Containerized Data
	// Importer.
	Fills bool
	// Holds is whether the pod only keeps the claim mounted, for a binding.
	Holds bool
}

// String names the pod, its state and its use of the claim.
func (u PodUse) String() string {
	text := fmt.Sprintf("pod %s (%s", u.Name, u.Phase)
	if u.Node != "" {
		text += " on " + u.Node
	}
	switch {
	case u.Fills:
		text += ", fills the claim"
	case u.ReadOnly:
		text += ", reads"
	}
	return text + ")"
}

// PodNames returns the sorted list of the pods.
func PodNames(pods []PodUse) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Users are the pods that use a claim themselves, and don't only keep it mounted.
func Users(pods []PodUse) []PodUse {
	return slices.DeleteFunc(slices.Clone(pods), func(p PodUse) bool { return p.Holds })
}

// VolumePodLabel is the label of a pod of virtclaim-volume; its value is the command.
const VolumePodLabel = "virtclaim.io/volume-pod"

// fillers are the labels of pods that write to the claim that they mount, and their values: commands, and components of the Containerized
// Data Importer.
var fillers = map[string][]string{VolumePodLabel: {"upload", "copy", "erase"}, "cdi.kubevirt.io": {"importer", "cdi-upload-server"}}

func isFiller(pod *corev1.Pod) bool {
	for label, values := range fillers {
		if slices.Contains(values, pod.Labels[label]) {
			return true
		}
	}
	return false
}

// PodsUsing returns the pods that mount a claim and have not finished. The API server can't select them, so all pods of the namespace are
// listed. For credentials that may not list them the error is recognized by apierrors.IsForbidden.
func (c *Client) PodsUsing(ctx context.Context, namespace, claim string) ([]PodUse, error) {
	uses, err := c.podUses(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return uses[claim], nil
}

// podUses returns the pods of all claims of a namespace, by the claim's name.
func (c *Client) podUses(ctx context.Context, namespace string) (map[string][]PodUse, error) {
	uses := map[string][]PodUse{}
	err := listAll(ctx, c, "Pods in the namespace "+namespace, c.objects.CoreV1().Pods(namespace), func(pod *corev1.Pod) {
		if isFinished(pod) {
			return
		}
		for claim, readOnly := range claimsOf(pod) {
			uses[claim] = append(uses[claim], PodUse{
				Name: pod.Name, ReadOnly: readOnly, Node: pod.Spec.NodeName, Phase: pod.Status.Phase, Fills: isFiller(pod) && !readOnly,
				Holds: pod.Labels[VolumePodLabel] == "hold" && readOnly,
			})
		}
	})
	return uses, err
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// claimsOf returns the claims that a pod mounts, and whether it mounts each of them read-only.
func claimsOf(pod *corev1.Pod) map[string]bool {
	claims := map[string]bool{}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		var name string
		var readOnly bool
		switch {
		case v.PersistentVolumeClaim != nil:
			name, readOnly = v.PersistentVolumeClaim.ClaimName, v.PersistentVolumeClaim.ReadOnly
		case v.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(pod, v)
		default:
			continue
		}
		readOnly = readOnly || onlyReads(pod, v.Name)
		before, ok := claims[name]
		claims[name] = readOnly && (before || !ok)
	}
	return claims
}

// onlyReads reports whether every container with the volume mounts it read-only. It is false for devices, which can always be written, and
// for a volume that no container mounts, whose use is unknown.
func onlyReads(pod *corev1.Pod, volume string) bool {
	mounts, devices := mountsOf(pod)
	mounted := false
	for _, m := range mounts {
		if m.Name != volume {
			continue
		}
		if !m.ReadOnly {
			return false
		}
		mounted = true
	}
	return mounted && !slices.ContainsFunc(devices, func(d corev1.VolumeDevice) bool { return d.Name == volume })
}

// mountsOf returns the mounts and devices of all kinds of containers.
func mountsOf(pod *corev1.Pod) (mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		mounts, devices = append(mounts, c.VolumeMounts...), append(devices, c.VolumeDevices...)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		mounts, devices = append(mounts, c.VolumeMounts...), append(devices, c.VolumeDevices...)
	}
	return mounts, devices
}
