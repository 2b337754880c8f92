//go:build acc

package volume_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

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
	chapSecret(t, l)
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

// A claim whose PersistentVolume names a streamed disk is bound as any other one: a guest reads it, and another one has an overlay over it. The
// pod admits only the initiator that the PersistentVolume has.
func TestAccVolume_StreamedClaim(t *testing.T) {
	l := acctest.Lab(t)
	pod := podOf(t, "stream.yaml")
	container := &pod.Spec.Containers[0]
	container.Image = programImage(t, l)
	streamed := diskOf(t, l, pod, "claimed", disk(t, "I am streamed", 8))
	container.Args = []string{"stream", "-name=iqn.2026-01.org.example:golden", "-chap=/chap", "-initiator=iqn.2026-01.org.example:ours", streamed}
	chapSecret(t, l)
	pod = acctest.RunPod(t, l, pod)
	acctest.AddClaim(t, l, streamedClaim(t, pod))
	cli, reads, writes := acctest.NewCLI(t), acctest.NewConsole(t), acctest.NewConsole(t)
	config := acctest.Provider(l, "streams") + `
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["host-a", "host-b"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = "vms", claim_name = "golden" } }
}

resource "virtclaim_disk" "over" {
  host       = "host-b"
  name       = "over"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.golden.volume }
}
`
	cli.Write("main.tf", config+writer(l, "host-a", reads, "golden = { volume = virtclaim_volume_binding.golden.volume }")+
		writer(l, "host-b", writes, "golden = { volume = virtclaim_disk.over.volume }"))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, reads.Await(t, "DISK vda "), "bytes=8388608 ro=1", "first=I am streamed")
	reads.Await(t, "FAILED vda ")
	acctest.Contains(t, writes.Await(t, "DISK vda "), "bytes=8388608 ro=0", "first=I am streamed")
	writes.Await(t, "WROTE vda ")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")

	cli.Write("main.tf", strings.ReplaceAll(config, "read-shared", "write-exclusive"))
	out, err := cli.Run("plan", "-no-color")
	if err == nil {
		t.Error("a claim of what is read-only was bound for writing")
	}
	acctest.Contains(t, out, "use access_mode read-shared")
}

// streamedClaim is the claim of the example, for this pod, which admits only one initiator.
func streamedClaim(t *testing.T, pod *corev1.Pod) lab.ClaimSpec {
	t.Helper()
	volume, claim, _ := strings.Cut(string(acctest.Must(os.ReadFile("../../../examples/volume-pods/stream-claim.yaml"))(t)), "\n---\n")
	var pv corev1.PersistentVolume
	var pvc corev1.PersistentVolumeClaim
	if err := errors.Join(yaml.UnmarshalStrict([]byte(volume), &pv), yaml.UnmarshalStrict([]byte(claim), &pvc)); err != nil {
		t.Fatal(err)
	}
	if pvc.Spec.VolumeName != pv.Name || pv.Spec.ClaimRef.Namespace != pvc.Namespace || pv.Spec.ClaimRef.Name != pvc.Name || !pv.Spec.ISCSI.ReadOnly {
		t.Errorf("%+v and %+v do not belong together", pv.Spec, pvc.Spec)
	}
	pv.Spec.ISCSI.TargetPortal, pv.Spec.ISCSI.InitiatorName = pod.Status.PodIP+":3260", new("iqn.2026-01.org.example:ours")
	return lab.ClaimSpec{
		Namespace: pvc.Namespace, Name: pvc.Name, Size: 8 << 20, Source: &pv.Spec.PersistentVolumeSource, AccessModes: pvc.Spec.AccessModes,
	}
}

// chapSecret creates the Secret of the pod that streams.
func chapSecret(t *testing.T, l *lab.Lab) {
	t.Helper()
	chap := &corev1.Secret{
		Type: "kubernetes.io/iscsi-chap", StringData: map[string]string{"node.session.auth.username": "hosts", "node.session.auth.password": "let-the-hosts-in"},
	}
	chap.Namespace, chap.Name = namespace, "golden-chap"
	if err := l.AddSecret(t.Context(), chap); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, namespace, chap.Name) })
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
`, host) + writer(l, host, console, fmt.Sprintf(`
    data   = { volume = virtclaim_disk.%[1]s["data"].volume, serial = "data" }
    golden = { volume = virtclaim_disk.%[1]s["golden"].volume, serial = "golden" }`, host))
}

// writer is a machine of a host, whose guest writes to its first disk.
func writer(l *lab.Lab, host string, console acctest.Console, disks string) string {
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" %[1]q {
  host    = %[1]q
  name    = "web"
  memory  = "128Mi"
  machine = { type = "pc", domain_type = "qemu" }
  boot    = { kernel = %[2]q, initrd = %[3]q, cmdline = "%[4]s virtclaim.write=vda:from-%[1]s" }
  serial  = { log_file = %[5]q }
  disks = {
    %[6]s
  }
}
`, host, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, console.Path(), disks)
}
