package acctest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// Shell is a command in a user's shell, whose kubectl is connected to the lab's cluster.
func Shell(t *testing.T, l *lab.Lab, command string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Fatal("this machine has no kubectl: ", err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Cluster.Kubeconfig)
	return cmd
}

// MustShell runs a command in a user's shell, and returns its output.
func MustShell(t *testing.T, l *lab.Lab, command string) string {
	t.Helper()
	out, err := Shell(t, l, command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// ClaimNow is a claim's present state; nil when it is gone.
func ClaimNow(t *testing.T, l *lab.Lab, namespace, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim, err := l.Cluster.Client.CoreV1().PersistentVolumeClaims(namespace).
		Get(context.WithoutCancel(t.Context()), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// Annotate sets annotations of a claim; empty ones are removed.
func Annotate(t *testing.T, l *lab.Lab, namespace, name string, annotations map[string]string) {
	t.Helper()
	change := map[string]any{}
	for key, value := range annotations {
		if change[key] = value; value == "" {
			change[key] = nil
		}
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": change}}) // marshalling strings can't fail
	claims := l.Cluster.Client.CoreV1().PersistentVolumeClaims(namespace)
	if _, err := claims.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// RunPod runs a pod on the lab's node until the end of the test, and returns it as lab.Node.AddPod does.
func RunPod(t *testing.T, l *lab.Lab, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	node := Must(l.Node(t.Context()))(t)
	Undo(t, func(ctx context.Context) error { return node.RemovePod(ctx, pod.Namespace, pod.Name) })
	return Must(node.AddPod(t.Context(), pod))(t)
}

// AddPod creates a pod that mounts a claim, as if a node had run it up to that phase, and returns the function that removes it.
func AddPod(t *testing.T, l *lab.Lab, namespace, claim, name string, readOnly bool, phase corev1.PodPhase) (remove func()) {
	t.Helper()
	pods := l.Cluster.Client.CoreV1().Pods(namespace)
	from := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: readOnly}}
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/none",
				VolumeDevices: []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: from}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove = func() {
		now := int64(0)
		if err := pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
	}
	status := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
	if _, err := pods.Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		remove()
		t.Fatal(err)
	}
	return remove
}

// DelayedClass creates a StorageClass with volumeBindingMode WaitForFirstConsumer for the test, whose driver runs on the hosts' nodes with
// a zone each.
func DelayedClass(t *testing.T, l *lab.Lab, name string, zones map[string]string) lab.DelayedClass {
	t.Helper()
	class := lab.DelayedClass{Name: name, TopologyKey: "topology.example.com/zone", Nodes: zones}
	Undo(t, func(ctx context.Context) error { return l.RemoveDelayedClass(ctx, class) })
	if err := l.AddDelayedClass(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	return class
}

// DelayedClaim creates a claim of the class for the test. It and its volume are removed at the end.
func DelayedClaim(t *testing.T, l *lab.Lab, class lab.DelayedClass, spec lab.ClaimSpec) {
	t.Helper()
	Undo(t, func(ctx context.Context) error { return l.RemoveClaim(ctx, spec) })
	if err := l.DelayedClaim(t.Context(), class, spec); err != nil {
		t.Fatal(err)
	}
}

// Provision runs the provisioner of a class, which makes volumes of a source, or gives up with an event, until stop or the end of the test.
func Provision(t *testing.T, l *lab.Lab, class lab.DelayedClass, source corev1.PersistentVolumeSource, givesUp string) (stop func()) {
	t.Helper()
	end := sync.OnceValue(l.Provision(context.WithoutCancel(t.Context()), class, source, givesUp))
	Undo(t, func(context.Context) error { return end() })
	return func() { _ = end() }
}
