//go:build acc

package volume_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/podimage"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// namespace is that of the examples.
const namespace = "vms"

var build = sync.OnceValues(func() (v1.ImageIndex, error) { return podimage.Build(context.Background(), "test", "amd64") })

// programImage pushes the image of virtclaim-volume to the lab's registry.
func programImage(t *testing.T, l *lab.Lab) string {
	t.Helper()
	index := acctest.Must(build())(t)
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return acctest.Must(registry.PushImage(t.Context(), "virtclaim-volume", "test", index))(t).Reference
}

// claim is a claim of a folder or a device of host-a.
type claim struct {
	name       string
	filesystem bool
	// stored is where its content is: the device, or disk.img.
	stored string
}

const claimSize = 64 << 20

func newClaim(t *testing.T, l *lab.Lab, name string, filesystem bool) claim {
	t.Helper()
	c := claim{name: name, filesystem: filesystem}
	var path string
	if filesystem {
		path = t.TempDir()
		c.stored = filepath.Join(path, "disk.img")
	} else {
		device := acctest.Must(l.AddBlockDevice(t.Context(), claimSize, nil))(t)
		acctest.Undo(t, func(ctx context.Context) error { return l.RemoveBlockDevice(ctx, device) })
		path, c.stored = device.Path, device.Path
	}
	acctest.AddClaim(t, l, lab.ClaimSpec{
		Namespace: namespace, Name: name, Filesystem: filesystem, Size: claimSize,
		Source: &corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-a"}}},
		}}}},
	})
	return c
}

// example is an example's pod, for a claim and with the lab's image.
func example(t *testing.T, l *lab.Lab, file string, c claim) *corev1.Pod {
	t.Helper()
	pod, container := podOf(t, file), 0
	main := &pod.Spec.Containers[container]
	main.Image = programImage(t, l)
	for n := range pod.Spec.Volumes {
		if pod.Spec.Volumes[n].Name == "volume" {
			pod.Spec.Volumes[n].PersistentVolumeClaim.ClaimName = c.name
		}
	}
	// Where the claim is mounted, and with which rights, depends on its volumeMode.
	like := podOf(t, map[bool]string{true: "copy.yaml", false: "upload.yaml"}[c.filesystem])
	pod.Spec.SecurityContext = like.Spec.SecurityContext
	isVolume := func(m corev1.VolumeMount) bool { return m.Name == "volume" }
	main.VolumeDevices, main.VolumeMounts = like.Spec.Containers[container].VolumeDevices, slices.DeleteFunc(main.VolumeMounts, isVolume)
	if n := slices.IndexFunc(like.Spec.Containers[container].VolumeMounts, isVolume); n >= 0 {
		main.VolumeMounts = append(main.VolumeMounts, like.Spec.Containers[container].VolumeMounts[n])
	}
	return pod
}

// podOf is the pod in a file of the examples, also that of a job, which no controller of the lab would make.
func podOf(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	text := acctest.Must(os.ReadFile(filepath.Join("../../../examples/volume-pods", file)))(t)
	for _, object := range bytes.Split(text, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		var pod corev1.Pod
		var job batchv1.Job
		if err := yaml.Unmarshal(object, &kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "Pod":
			if err := yaml.UnmarshalStrict(object, &pod); err != nil {
				t.Fatal(err)
			}
			return &pod
		case "Job":
			if err := yaml.UnmarshalStrict(object, &job); err != nil {
				t.Fatal(err)
			}
			pod.ObjectMeta, pod.Spec = job.Spec.Template.ObjectMeta, job.Spec.Template.Spec
			pod.Name, pod.Namespace = job.Name, job.Namespace
			return &pod
		}
	}
	t.Fatalf("there is no pod in %s", file)
	return nil
}

// upload is a pod that waits for an image.
type upload struct {
	claim
	pod *corev1.Pod
	pin string
}

func startUpload(t *testing.T, l *lab.Lab, c claim) upload {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "upload-token"}, StringData: map[string]string{"token": "let-me-in\n"}}
	if err := l.AddSecret(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, namespace, secret.Name) })
	pod := acctest.RunPod(t, l, example(t, l, "upload.yaml", c))
	node := acctest.Must(l.Node(t.Context()))(t)
	said := acctest.Must(node.PodLog(t.Context(), namespace, pod.Name, ""))(t)
	pin := regexp.MustCompile(`--pinnedpubkey (sha256//\S+)`).FindStringSubmatch(said)
	if pin == nil {
		t.Fatalf("the pod does not name its certificate: %s", said)
	}
	return upload{c, pod, pin[1]}
}

// curl is curl for the pod, which checks its certificate.
func (u upload) curl(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{
		"--silent", "--show-error", "--insecure", "--pinnedpubkey", u.pin, "--header", "Authorization: Bearer let-me-in",
		"https://" + u.pod.Status.PodIP + ":8443/volume",
	}, args...)
	return exec.CommandContext(ctx, "curl", args...)
}

// ended waits until a pod has succeeded, and returns its last words.
func ended(t *testing.T, l *lab.Lab, pod *corev1.Pod) string {
	t.Helper()
	acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=jsonpath='{.status.phase}'=Succeeded pod/"+pod.Name)
	return acctest.MustShell(t, l, "kubectl --namespace vms get pod "+pod.Name+" --output jsonpath='{.status.containerStatuses[0].state.terminated.message}'")
}

// disk is a raw image that begins with a text; a part of it is blank.
func disk(t *testing.T, begin string, mib int) (path string) {
	t.Helper()
	content := make([]byte, mib<<20)
	random := rand.NewChaCha8([32]byte{1})
	for at := 0; at < len(content); at += 2 << 20 {
		_, _ = random.Read(content[at : at+1<<20])
	}
	copy(content, begin+"\x00")
	path = filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// holds fails the test unless the claim has an image's content.
func (c claim) holds(t *testing.T, image string) {
	t.Helper()
	want := acctest.Must(os.ReadFile(image))(t)
	if got := acctest.StoredAt(t, c.stored, 0, len(want)); got != string(want) {
		t.Errorf("claim %s does not hold the image; it begins with %q", c.name, got[:40])
	}
}

// incomplete fails the test unless the claim is marked as such.
func (c claim) incomplete(t *testing.T) {
	t.Helper()
	if got := acctest.StoredAt(t, c.stored, 0, 40); got != "virtclaim: this volume is being filled, " {
		t.Errorf("claim %s begins with %q", c.name, got)
	}
}

func (c claim) binding() string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" %[1]q {
  name   = %[1]q
  hosts  = ["host-a"]
  source = { persistent_volume_claim = { namespace = "vms", claim_name = %[1]q } }
}
`, c.name)
}

// machine is a machine on host-a with the claims as disks.
func machine(l *lab.Lab, console acctest.Console, claims ...claim) string {
	disks, bindings := "", ""
	for _, c := range claims {
		disks += fmt.Sprintf("%s = { volume = virtclaim_volume_binding.%s.volume, serial = %q }\n", c.name, c.name, c.name)
		bindings += c.binding()
	}
	return fmt.Sprintf(`%s
resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "128Mi"
  machine = { type = "pc", domain_type = "qemu" }
  boot    = { kernel = %q, initrd = %q, cmdline = %q }
  serial  = { log_file = %q }
  disks   = {
    %s
  }
}
`, bindings, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, console.Path(), disks)
}
