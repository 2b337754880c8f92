package cluster

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// podOf is a running pod with the claim golden as its volume data.
func podOf(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "web"},
		Spec: corev1.PodSpec{
			NodeName: "node-a",
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "golden"},
			}}},
			Containers: []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	change(pod)
	return pod
}

func TestPodsUsing(t *testing.T) {
	mounts := func(pod *corev1.Pod) *[]corev1.VolumeMount { return &pod.Spec.Containers[0].VolumeMounts }
	readOnly := func(pod *corev1.Pod) { (*mounts(pod))[0].ReadOnly = true }
	device := corev1.Container{VolumeDevices: []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}}}
	none, reads, writes := []PodUse(nil), []PodUse{{Name: "web", ReadOnly: true, Node: "node-a", Phase: "Running"}}, []PodUse{{Name: "web", Node: "node-a", Phase: "Running"}}
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		want   []PodUse
	}{
		{"mounted", func(*corev1.Pod) {}, writes},
		{"read-only source", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true }, reads},
		{"read-only mount", readOnly, reads},
		{"read-only and written mount", func(p *corev1.Pod) {
			readOnly(p)
			*mounts(p) = append(*mounts(p), corev1.VolumeMount{Name: "data", MountPath: "/more"})
		}, writes},
		{"written by an init container", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
			readOnly(p)
		}, writes},
		{"written by an ephemeral container", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				VolumeMounts: []corev1.VolumeMount{{Name: "data"}},
			}}}
			readOnly(p)
		}, writes},
		{"kept mounted for a binding", func(p *corev1.Pod) {
			readOnly(p)
			p.Labels = map[string]string{VolumePodLabel: "hold"}
		}, []PodUse{{Name: "web", ReadOnly: true, Node: "node-a", Phase: "Running", Holds: true}}},
		{"written under the label of those", func(p *corev1.Pod) { p.Labels = map[string]string{VolumePodLabel: "hold"} }, writes},
		{"another volume is written", func(p *corev1.Pod) {
			readOnly(p)
			*mounts(p) = append(*mounts(p), corev1.VolumeMount{Name: "scratch", MountPath: "/tmp"})
		}, reads},
		{"device", func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{device} }, writes},
		{"device beside a read-only mount", func(p *corev1.Pod) {
			readOnly(p)
			p.Spec.Containers = append(p.Spec.Containers, device)
		}, writes},
		{"device of a read-only source", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{device}
			p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
		}, reads},
		{"mounted by no container", func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil }, writes},
		{"two volumes of one claim, one of them read-only", func(p *corev1.Pod) {
			second := *p.Spec.Volumes[0].DeepCopy()
			second.Name, second.PersistentVolumeClaim.ReadOnly = "again", true
			p.Spec.Volumes = append(p.Spec.Volumes, second)
		}, writes},
		{"two read-only volumes of one claim", func(p *corev1.Pod) {
			p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
			second := *p.Spec.Volumes[0].DeepCopy()
			second.Name = "again"
			p.Spec.Volumes = append(p.Spec.Volumes, second)
		}, reads},
		{"another claim", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "silver" }, none},
		{"another kind of volume", func(p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}, none},
		{"another namespace", func(p *corev1.Pod) { p.Namespace = "other" }, none},
		{"generic ephemeral volume", func(p *corev1.Pod) {
			p.Name, p.Spec.Volumes[0].Name, p.Spec.Volumes[0].VolumeSource = "gol", "den", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
		}, none},
		{"fills", func(p *corev1.Pod) { p.Labels = map[string]string{"cdi.kubevirt.io": "importer"} }, []PodUse{{Name: "web", Node: "node-a", Phase: "Running", Fills: true}}},
		{"fills as one of our pods", func(p *corev1.Pod) { p.Labels = map[string]string{"virtclaim.io/volume-pod": "upload"} }, []PodUse{{Name: "web", Node: "node-a", Phase: "Running", Fills: true}}},
		{"erases", func(p *corev1.Pod) { p.Labels = map[string]string{"virtclaim.io/volume-pod": "erase"} }, []PodUse{{Name: "web", Node: "node-a", Phase: "Running", Fills: true}}},
		{"is one of our pods that fills nothing", func(p *corev1.Pod) { p.Labels = map[string]string{"virtclaim.io/volume-pod": "stream"} }, []PodUse{{Name: "web", Node: "node-a", Phase: "Running"}}},
		{"fills another", func(p *corev1.Pod) { p.Labels = map[string]string{"cdi.kubevirt.io": "importer"}; readOnly(p) }, reads},
		{"succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, none},
		{"failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, none},
		{"unknown", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, []PodUse{{Name: "web", Node: "node-a", Phase: "Unknown"}}},
		{"pending", func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodPending, "" }, []PodUse{{Name: "web", Phase: "Pending"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := NewForClients("https://api", fake.NewClientset(podOf(tt.change)), nil)
			for _, r := range []interface {
				PodsUsing(ctx context.Context, namespace, claim string) ([]PodUse, error)
			}{client, client.Cached()} {
				got, err := r.PodsUsing(t.Context(), "vms", "golden")
				if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
					t.Errorf("%v %s", err, diff)
				}
			}
		})
	}
}

// Kubernetes creates the claim of a generic ephemeral volume, and names it after the pod and the volume.
func TestPodsUsing_EphemeralClaims(t *testing.T) {
	pod := podOf(func(p *corev1.Pod) {
		p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	})
	client := NewForClients("https://api", fake.NewClientset(pod), nil)
	got, err := client.PodsUsing(t.Context(), "vms", "web-data")
	if diff := cmp.Diff([]PodUse{{Name: "web", Node: "node-a", Phase: "Running"}}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
