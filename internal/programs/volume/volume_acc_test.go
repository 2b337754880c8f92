//go:build acc

package volume_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// An image is put into a claim by curl or from a registry, and a guest reads it. Until it is there, the claim is not bound.
func TestAccVolume_Upload(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	console := acctest.NewConsole(t)
	var claims []claim
	for _, is := range []struct {
		name       string
		filesystem bool
		convert    func(raw string) (image string)
	}{
		{"raw", true, func(raw string) string { return raw }},
		{"qcow2", false, func(raw string) string { return qcow2(t, raw) }},
		{"packed", true, func(raw string) string { return packed(t, qcow2(t, raw)) }},
	} {
		raw := disk(t, "I am "+is.name, 16)
		image := is.convert(raw)
		c := newClaim(t, l, is.name, is.filesystem)
		t.Run(is.name, func(t *testing.T) {
			u := startUpload(t, l, c)
			cli.Write("main.tf", acctest.Provider(l, "pods")+c.binding())
			if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !strings.Contains(out, "fills the claim") {
				t.Errorf("%v; the claim is bound while a pod fills it: %s", err, out)
			}
			out, err := u.curl(t.Context(), "--upload-file", image).CombinedOutput()
			sum := fmt.Sprintf("sha256:%x", sha256.Sum256(acctest.Must(os.ReadFile(image))(t)))
			if err != nil || !strings.Contains(string(out), `"state":"filled"`) || !strings.Contains(string(out), sum) {
				t.Fatalf("%v: %s", err, out)
			}
			if said := ended(t, l, u.pod); !strings.Contains(said, sum) {
				t.Errorf("its termination message is %q", said)
			}
		})
		c.holds(t, raw)
		claims = append(claims, c)
	}
	cli.Write("main.tf", acctest.Provider(l, "pods")+machine(l, console, claims...))
	cli.Must("apply", "-auto-approve", "-no-color")
	for _, c := range claims {
		acctest.Contains(t, console.Await(t, "serial="+c.name+" "), "first=I am "+c.name)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The disk of a container image is put into a claim, and a guest boots from it.
func TestAccVolume_Copy(t *testing.T) {
	l := acctest.Lab(t)
	raw := disk(t, "I am copied", 16)
	c := newClaim(t, l, "copied", false)
	pod := example(t, l, "copy.yaml", c)
	copies(t, l, pod, qcow2(t, raw))
	acctest.RunPod(t, l, pod)
	if said := ended(t, l, pod); !strings.HasPrefix(said, `{"format":"qcow2","capacity":16777216,"digest":"sha256:`) {
		t.Errorf("its termination message is %q", said)
	}
	c.holds(t, raw)
	cli := acctest.NewCLI(t)
	console := acctest.NewConsole(t)
	cli.Write("main.tf", acctest.Provider(l, "pods")+machine(l, console, c))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, console.Await(t, "serial=copied "), "first=I am copied")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Whatever is killed in the middle, the claim is marked as incomplete, and the next try fills it.
func TestAccVolume_Killed(t *testing.T) {
	l := acctest.Lab(t)
	raw := disk(t, "I am whole", 32)
	node := acctest.Must(l.Node(t.Context()))(t)
	fill := func(t *testing.T, u upload) {
		t.Helper()
		if out, err := u.curl(t.Context(), "--fail", "--upload-file", raw).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		ended(t, l, u.pod)
		u.holds(t, raw)
	}
	t.Run("curl", func(t *testing.T) {
		u := startUpload(t, l, newClaim(t, l, "curl", true))
		u.inTheMiddle(t, raw).kill()
		acctest.Eventually(t, "the pod sees the end of its connection", func() error { return u.says(t, `"state":"incomplete"`) })
		u.incomplete(t)
		fill(t, u)
	})
	t.Run("pod", func(t *testing.T) {
		c := newClaim(t, l, "pod", false)
		u := startUpload(t, l, c)
		sending := u.inTheMiddle(t, raw)
		acctest.MustShell(t, l, "kubectl --namespace vms delete pod upload --force --grace-period=0")
		sending.wait()
		if err := node.RemovePod(t.Context(), namespace, "upload"); err != nil {
			t.Fatal(err)
		}
		c.incomplete(t)
		if err := l.RemoveSecret(t.Context(), namespace, "upload-token"); err != nil {
			t.Fatal(err)
		}
		fill(t, startUpload(t, l, c))
	})
	t.Run("container", func(t *testing.T) {
		c := newClaim(t, l, "container", true)
		u := startUpload(t, l, c)
		sending := u.inTheMiddle(t, raw)
		command(t, "pkill", "-KILL", "-f", "^/virtclaim-volume upload")
		sending.wait()
		c.incomplete(t)
		acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 pod/upload")
		acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=condition=Ready pod/upload")
		u.pin = "" // the new process has another certificate
		said := acctest.Must(node.PodLog(t.Context(), namespace, "upload", ""))(t)
		_, u.pin, _ = strings.Cut(strings.TrimSpace(said), "--pinnedpubkey ")
		fill(t, u)
	})
	t.Run("kubelet", func(t *testing.T) {
		u := startUpload(t, l, newClaim(t, l, "kubelet", true))
		sending := u.inTheMiddle(t, raw)
		if err := node.KillKubelet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := node.StartKubelet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !sending.wait() {
			t.Error("the pod did not go on without its kubelet")
		}
		ended(t, l, u.pod)
		u.holds(t, raw)
	})
	t.Run("registry", func(t *testing.T) {
		c := newClaim(t, l, "registry", true)
		pod := example(t, l, "copy.yaml", c)
		copies(t, l, pod, raw)
		registry := acctest.Must(l.Registry(t.Context()))(t)
		registry.Cut(append([]int64{8 << 20}, make([]int64, 40)...)...)
		pod.Spec.NodeName = node.Name
		acctest.Undo(t, func(ctx context.Context) error { return node.RemovePod(ctx, namespace, pod.Name) })
		if _, err := l.Cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 pod/"+pod.Name)
		c.incomplete(t)
		registry.Cut()
		ended(t, l, pod)
		c.holds(t, raw)
	})
}

// sending is an upload that goes on.
type sending struct {
	cmd  *exec.Cmd
	stop context.CancelFunc
}

// inTheMiddle begins a slow upload, and returns when a part of it is in the volume.
func (u upload) inTheMiddle(t *testing.T, image string) sending {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	cmd := u.curl(ctx, "--limit-rate", "4M", "--upload-file", image)
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	acctest.Eventually(t, "a part of the image is written", func() error {
		return u.says(t, `"state":"filling","bytes":[1-9]`)
	})
	return sending{cmd, stop}
}

// says is an error until the pod shows a state.
func (u upload) says(t *testing.T, part string) error {
	t.Helper()
	out, err := u.curl(t.Context()).CombinedOutput()
	if err == nil && !regexp.MustCompile(part).Match(out) {
		err = fmt.Errorf("it says %s", out)
	}
	return err
}

func (s sending) kill() {
	s.stop()
	s.wait()
}

// wait reports whether the upload was taken.
func (s sending) wait() bool { return s.cmd.Wait() == nil }

// copies has a pod copy an image's disk.
func copies(t *testing.T, l *lab.Lab, pod *corev1.Pod, file string) {
	t.Helper()
	pod.Spec.Containers[0].Args = []string{"copy", "-scratch=/scratch", diskOf(t, l, pod, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, file)}
}

// diskOf pushes an image with a disk to the lab's registry, and returns its reference for a pod. That registry has no TLS, so the reference has the digest, and the
// pod a name below localhost for it.
func diskOf(t *testing.T, l *lab.Lab, pod *corev1.Pod, tag, file string) (reference string) {
	t.Helper()
	registry := acctest.Must(l.Registry(t.Context()))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disk", Tag: tag, Compression: "none",
		Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/disk.img": acctest.Must(os.ReadFile(file))(t)}}},
	}))(t)
	_, port, _ := strings.Cut(registry.Address, ":")
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: acctest.Must(l.Node(t.Context()))(t).Machine, Hostnames: []string{"registry.localhost"}}}
	return "registry.localhost:" + port + "/disk@" + image.Digest
}

func qcow2(t *testing.T, raw string) string {
	t.Helper()
	image := strings.TrimSuffix(raw, "raw") + "qcow2"
	command(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, image)
	return image
}

// packed packs a file with zstd.
func packed(t *testing.T, file string) string {
	t.Helper()
	var to bytes.Buffer
	w := acctest.Must(zstd.NewWriter(&to))(t)
	if _, err := w.Write(acctest.Must(os.ReadFile(file))(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".zst", to.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file + ".zst"
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
