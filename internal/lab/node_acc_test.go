//go:build acc

package lab

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const podNamespace = "pods"

func node(t *testing.T, l *Lab) *Node {
	t.Helper()
	n, err := l.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// shellPod is a pod that runs a shell script with claims in the folder /claims, or as devices there.
func shellPod(name, image, script string, claims ...ClaimSpec) *corev1.Pod {
	main := corev1.Container{Name: "main", Image: image, Command: []string{"/bin/sh", "-c", script}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: podNamespace, Name: name}}
	for _, claim := range claims {
		path := "/claims/" + claim.Name
		if claim.Filesystem {
			main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: claim.Name, MountPath: path})
		} else {
			main.VolumeDevices = append(main.VolumeDevices, corev1.VolumeDevice{Name: claim.Name, DevicePath: path})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}})
	}
	pod.Spec.Containers = []corev1.Container{main}
	return pod
}

// serving makes a pod ready when it listens on port 8080.
func serving(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 1,
	}
	return pod
}

// localClaim is a claim of storage at a path of host-a.
func localClaim(name, path string, filesystem bool) ClaimSpec {
	return ClaimSpec{
		Namespace: podNamespace, Name: name, Filesystem: filesystem, Size: lunSize,
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName},
			}},
		}}}},
	}
}

func addClaim(t *testing.T, l *Lab, spec ClaimSpec) {
	t.Helper()
	t.Cleanup(func() {
		if err := l.RemoveClaim(context.Background(), spec); err != nil {
			t.Error(err)
		}
	})
	if err := l.AddClaim(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// addPod returns the pod when it is ready.
func addPod(t *testing.T, n *Node, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	t.Cleanup(func() {
		if err := n.RemovePod(context.Background(), pod.Namespace, pod.Name); err != nil {
			t.Error(err)
		}
	})
	ready, err := n.AddPod(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, response.Status, err, body)
	}
	return string(body)
}

func TestAccNode_PodUsesStorageOfItsHost(t *testing.T) {
	l := sharedLab(t)
	n := node(t, l)
	device, err := l.AddBlockDevice(t.Context(), lunSize, []byte("what the device had"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.RemoveBlockDevice(context.Background(), device); err != nil {
			t.Error(err)
		}
	})
	folder := t.TempDir()
	block, files := localClaim("block", device.Path, false), localClaim("files", folder, true)
	addClaim(t, l, block)
	addClaim(t, l, files)
	const script = `set -eu
head -c 19 /claims/block
echo
printf "from a pod" >/claims/files/disk.img
printf "from a pod" | dd of=/claims/block bs=512 seek=8 conv=fsync 2>/dev/null
exec httpd -f -p 8080 -h /claims/files`
	pod := addPod(t, n, serving(shellPod("writer", n.BusyBox, script, block, files)))

	seen, err := l.Hosts[nodeName].sandbox.output(t.Context(), fmt.Sprintf("cat %s; dd if=%s bs=1 skip=4096 count=10 2>/dev/null",
		quote(filepath.Join(folder, "disk.img")), device.Path))
	if err != nil || seen != "from a podfrom a pod" {
		t.Errorf("%s has %q, %v", nodeName, seen, err)
	}
	if log, err := n.PodLog(t.Context(), pod.Namespace, pod.Name, ""); err != nil || log != "what the device had\n" {
		t.Errorf("the log is %q, %v", log, err)
	}
	if got := get(t, "http://"+pod.Status.PodIP+":8080/disk.img"); got != "from a pod" {
		t.Errorf("its port serves %q", got)
	}
	through, err := l.Cluster.Client.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, "8080", "disk.img", nil).DoRaw(t.Context())
	if err != nil || string(through) != "from a pod" {
		t.Errorf("through the API server, its port serves %q, %v", through, err)
	}
	// The Node's registry is reached by pods, too, and exec by its clients.
	registry, err := l.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	port := registry.Address[strings.LastIndex(registry.Address, ":"):]
	out, err := run(t, "kubectl", "--kubeconfig", l.Cluster.Kubeconfig, "-n", pod.Namespace, "exec", pod.Name, "--",
		"/bin/busybox", "wget", "-q", "-O", "-", "http://"+n.Machine+port+"/v2/lab/busybox/tags/list")
	if err != nil || !strings.Contains(out, `"tags":["1"]`) {
		t.Errorf("in the pod, the registry answers %q, %v", out, err)
	}
}

func TestAccNode_KubeletIsKilled(t *testing.T) {
	l := sharedLab(t)
	n := node(t, l)
	const script = `echo $HOSTNAME >/tmp-index.html; exec httpd -f -p 8080 -h /`
	before := addPod(t, n, serving(shellPod("before", n.BusyBox, script)))
	if err := n.KillKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, "http://"+before.Status.PodIP+":8080/tmp-index.html"); got != "before\n" {
		t.Errorf("without kubelet, its pod serves %q", got)
	}
	if _, err := n.PodLog(t.Context(), before.Namespace, before.Name, ""); err == nil {
		t.Error("there is a log without kubelet, so it was not killed")
	}
	if err := n.StartKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
	addPod(t, n, shellPod("after", n.BusyBox, "sleep infinity"))
	now, err := l.Cluster.Client.CoreV1().Pods(before.Namespace).Get(t.Context(), before.Name, metav1.GetOptions{})
	if err != nil || now.UID != before.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod is not what it was: %+v, %v", now, err)
	}
}

func TestAccNode_PodErrorsSayWhy(t *testing.T) {
	l := sharedLab(t)
	n := node(t, l)
	registry, err := l.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	missing := shellPod("missing", registry.Address+"/lab/none:1", "exit 0")
	failing := shellPod("failing", n.BusyBox, "echo last words; exit 3")
	failing.Spec.RestartPolicy = corev1.RestartPolicyNever
	for pod, texts := range map[*corev1.Pod][]string{
		missing: {"event Failed: ", "/lab/none:1", "not found"},
		failing: {"exit status 3", "log of container main: last words", "event Pulled: "},
	} {
		_, err := n.AddPod(t.Context(), pod)
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("the error of the pod %s does not have %q: %v", pod.Name, text, err)
			}
		}
		if err := n.RemovePod(t.Context(), pod.Namespace, pod.Name); err != nil {
			t.Error(err)
		}
	}
}

// startNode starts a node with a pod that has a block device.
func startNode(ctx context.Context, l *Lab) error {
	n, err := l.Node(ctx)
	if err != nil {
		return err
	}
	device, err := l.AddBlockDevice(ctx, lunSize, nil)
	if err != nil {
		return err
	}
	block := localClaim("block", device.Path, false)
	if err := l.AddClaim(ctx, block); err != nil {
		return err
	}
	_, err = n.AddPod(ctx, shellPod("sleeper", n.BusyBox, "sleep infinity", block))
	return err
}

// nodeLeft lists the control groups and the network links of a lab's node. A loop device of its kubelet keeps the lab's one.
func nodeLeft(t *testing.T, dir string) (left []string) {
	t.Helper()
	name := "virtclaim-" + filepath.Base(dir)
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		groups, err := filepath.Glob(pattern + name)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, groups...)
	}
	aliases, err := filepath.Glob("/sys/class/net/*/ifalias")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range aliases {
		alias, _ := os.ReadFile(path) // it may have gone since
		if strings.TrimSpace(string(alias)) == name {
			left = append(left, filepath.Dir(path))
		}
	}
	return left
}
