//go:build acc

package volume_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Machines on two hosts have overlays over one pod that streams images, without a claim. What they write stays in the overlays. The pod can be restarted
// under them.
func TestAccVolume_Stream(t *testing.T) {
	l := acctest.Lab(t)
	node := acctest.Must(l.Node(t.Context()))(t)
	pod := podOf(t, "stream.yaml")
	pod.Spec.Containers[0].Image = programImage(t, l)
	golden := diskOf(t, l, pod, "golden", qcow2(t, disk(t, "I am golden", 16)))
	data := diskOf(t, l, pod, "data", disk(t, "I am data", 8))
	pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args[:3:3], golden, data)
	chap := &corev1.Secret{
		Type: "kubernetes.io/iscsi-chap", StringData: map[string]string{"node.session.auth.username": "hosts", "node.session.auth.password": "let-the-hosts-in"},
	}
	chap.Namespace, chap.Name = namespace, "golden-chap"
	if err := l.AddSecret(t.Context(), chap); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, namespace, chap.Name) })
	pod = acctest.RunPod(t, l, pod)
	if said := acctest.Must(node.PodLog(t.Context(), namespace, pod.Name, ""))(t); strings.Contains(said, "let-the-hosts-in") {
		t.Errorf("its log has the password: %s", said)
	}

	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "streams") + lun(pod, 0, "golden") + lun(pod, 1, "data")
	consoles := map[string]acctest.Console{"host-a": acctest.NewConsole(t), "host-b": acctest.NewConsole(t)}
	for host, console := range consoles {
		config += overlays(l, host, console)
	}
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	for host, console := range consoles {
		acctest.Contains(t, console.Await(t, "serial=golden "), "bytes=16777216 ro=0", "first=I am golden")
		acctest.Contains(t, console.Await(t, "serial=data "), "bytes=8388608 ro=0", "first=I am data")
		console.Await(t, "WROTE vda")
		_ = host
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")

	command(t, "pkill", "-KILL", "-f", "^/virtclaim-volume stream")
	acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=jsonpath='{.status.containerStatuses[0].restartCount}'=1 pod/golden")
	acctest.MustShell(t, l, "kubectl --namespace vms wait --timeout=120s --for=condition=Ready pod/golden")
	acctest.Contains(t, acctest.Must(node.PodLog(t.Context(), namespace, pod.Name, ""))(t), "is there already, sha256:")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// lun is the binding of a LUN of the pod.
func lun(pod *corev1.Pod, number int, name string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" %[1]q {
  name        = %[1]q
  hosts       = ["host-a", "host-b"]
  access_mode = "read-shared"
  source = { iscsi = {
    portal     = "%[2]s:3260"
    iqn        = "iqn.2026-01.org.example:golden"
    lun        = %[3]d
    secret_ref = { namespace = "vms", name = "golden-chap" }
  } }
}
`, name, pod.Status.PodIP, number)
}

// overlays is a machine of a host with overlays over both.
func overlays(l *lab.Lab, host string, console acctest.Console) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  for_each   = { golden = virtclaim_volume_binding.golden.volume, data = virtclaim_volume_binding.data.volume }
  host       = %[1]q
  name       = each.key
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = each.value }
}

resource "virtclaim_virtual_machine" %[1]q {
  host    = %[1]q
  name    = "web"
  memory  = "128Mi"
  machine = { type = "pc", domain_type = "qemu" }
  boot    = { kernel = %[2]q, initrd = %[3]q, cmdline = "%[4]s virtclaim.write=vda:from-%[1]s" }
  serial  = { log_file = %[5]q }
  disks = {
    data   = { volume = virtclaim_disk.%[1]s["data"].volume, serial = "data" }
    golden = { volume = virtclaim_disk.%[1]s["golden"].volume, serial = "golden" }
  }
}
`, host, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, console.Path())
}
