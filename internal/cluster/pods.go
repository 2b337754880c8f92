package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// PodUse is a pod that mounts a claim and is not finished.
type PodUse struct {
	Name string
	// ReadOnly says that no container of it can write to the claim.
	ReadOnly bool
	// Node is empty while the pod waits for one.
	Node  string
	Phase corev1.PodPhase
	// Fills says that it puts content on the claim: it is one of KubeVirt's Containerized Data Importer.
	Fills bool
}

// String names the pod and what it does.
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

// PodNames lists pods, sorted.
func PodNames(pods []PodUse) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// fillers are the components of the Containerized Data Importer whose pods write to the claim that they mount.
var fillers = []string{"importer", "cdi-upload-server"}

func isFiller(pod *corev1.Pod) bool { return slices.Contains(fillers, pod.Labels["cdi.kubevirt.io"]) }

// PodsUsing lists the pods that mount a claim and are not finished. The API server can't select them, so it reads
// all pods of the namespace. Credentials that may not do that get an error that apierrors.IsForbidden recognises.
func (c *Client) PodsUsing(ctx context.Context, namespace, claim string) ([]PodUse, error) {
	uses, err := c.podUses(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return uses[claim], nil
}

// podUses are those of all claims of a namespace, by the claim's name.
func (c *Client) podUses(ctx context.Context, namespace string) (map[string][]PodUse, error) {
	uses := map[string][]PodUse{}
	err := listAll(ctx, c, "Pods in the namespace "+namespace, c.objects.CoreV1().Pods(namespace), func(pod *corev1.Pod) {
		if isFinished(pod) {
			return
		}
		for claim, readOnly := range claimsOf(pod) {
			uses[claim] = append(uses[claim], PodUse{
				Name: pod.Name, ReadOnly: readOnly, Node: pod.Spec.NodeName, Phase: pod.Status.Phase, Fills: isFiller(pod) && !readOnly,
			})
		}
	})
	return uses, err
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// claimsOf are the claims that a pod mounts, and whether it only reads them.
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

// onlyReads tells whether every container that has a volume mounts it read-only. A device can always be written, and of a
// volume that no container mounts nothing is known.
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

// mountsOf are those of all kinds of containers.
func mountsOf(pod *corev1.Pod) (mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		mounts, devices = append(mounts, c.VolumeMounts...), append(devices, c.VolumeDevices...)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		mounts, devices = append(mounts, c.VolumeMounts...), append(devices, c.VolumeDevices...)
	}
	return mounts, devices
}
