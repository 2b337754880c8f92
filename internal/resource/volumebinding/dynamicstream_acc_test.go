//go:build acc

package volumebinding_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A pod streams a container image that the binding names: hosts have overlays over it, and initiators can't write to it. Another image is refused,
// and leaves nothing.
func TestAccVolumeBinding_DynamicStream(t *testing.T) {
	l := acctest.Lab(t)
	node := acctest.Schedule(t, l, "vms")
	folder := folderClaim(t, l, "vms", "volumes")
	made := make([]byte, 8<<20)
	copy(made, "made of an image")
	registry := acctest.Must(l.Registry(t.Context()))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "golden/disk", Tag: "demand", Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/disk.img": made}}},
	}))(t)
	_, port, _ := strings.Cut(registry.Address, ":")
	below := "registry.localhost:" + port + "/golden/" // the registry has no TLS, and so a name below localhost
	reads, writes := acctest.NewConsole(t), acctest.NewConsole(t)
	cli := configured(t, l, "image", example(t, "resource_dynamic.tf", "ghcr.io/virtclaim/virtclaim-volume:0.1.0", provisionImage(t, l),
		`"provision", `, fmt.Sprintf(`"provision", "-images=%s", `, below), `["node-a"]`, `["host-a", "host-b"]
  access_mode = "read-shared"`, `{ size = "10Gi" }`, fmt.Sprintf(`{ image = %q, read_only = "true" }`, below+"disk@"+image.Digest),
		`ports  `, fmt.Sprintf("pod_template = \"spec: {hostAliases: [{ip: '%s', hostnames: [registry.localhost]}]}\"\n        ports  ", node.Machine))+`
resource "virtclaim_disk" "over" {
  host       = "host-b"
  name       = "over"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`+guest(l, reads)+strings.NewReplacer("virtclaim_volume_binding.data", "virtclaim_disk.over", `"web" {`, `"over" {`, "host-a", "host-b").Replace(guest(l, writes)))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, reads.Await(t, "DISK vda "), "bytes=8388608 ro=1", "first=made of an image")
	acctest.Contains(t, writes.Await(t, "DISK vda "), "bytes=8388608 ro=0", "first=made of an image")
	writes.Await(t, "WRITTEN")
	volumes := acctest.Must(filepath.Glob(filepath.Join(folder, "*", "volume-*", "disk.img")))(t)
	if len(volumes) != 1 || acctest.StoredAt(t, volumes[0], 0, len(made)) != string(made) {
		t.Errorf("of %q the one volume is not as it was made", volumes)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")

	cli.Replace("main.tf", "/golden/disk@", "/other/disk@")
	out, err := cli.Run("apply", "-auto-approve", "-no-color", "-target="+data)
	if err == nil {
		t.Error("an image that the pod is not to take was taken")
	}
	says(t, out, "refused the request (403 Forbidden)", "-images")
	if left := acctest.Must(filepath.Glob(filepath.Join(folder, "*", "volume-*")))(t); len(left) > 0 || !isEmpty(t, cli) {
		t.Errorf("there is %q", left)
	}
}

// A server makes a root file system of a container image, which has its volume's size once a machine has run its program.
func TestAccVolumeBinding_DynamicRoot(t *testing.T) {
	l := acctest.Lab(t)
	registry, kernel := acctest.Must(l.Registry(t.Context()))(t), acctest.Must(l.Kernel(t.Context()))(t)
	linux := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "golden/linux", Tag: "1", Layers: []lab.ImageLayer{acctest.Must(lab.KernelLayer(kernel))(t)},
	}))(t)
	busybox := acctest.Must(os.ReadFile(kernel.BusyBox))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "golden/root", Tag: "1", Layers: []lab.ImageLayer{{Programs: map[string][]byte{"bin/busybox": busybox}}},
	}))(t)
	server := serveVolumes(t, l, "-images="+registry.Address+"/golden/")
	console := acctest.NewConsole(t)
	const script = `set -- $(/bin/busybox df -m / | /bin/busybox tail -n 1); echo "size=$2"
echo row >> /rows; /bin/busybox sync; echo "rows=$(/bin/busybox wc -l < /rows)"; exec /bin/busybox sleep 1000`
	parameters := fmt.Sprintf(`{ size = "20Gi", root_filesystem = %q }`, image.Reference)
	cli := configured(t, l, "root", strings.Replace(server.example(t), `{ size = "64Mi" }`, parameters, 1)+fmt.Sprintf(`
resource "virtclaim_kernel" "linux" {
  host       = "host-a"
  name       = "linux"
  usage_type = "fast"
  cmdline    = "console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests rodata=off"
  source     = { container_image = { image = %q } }
}

resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "128Mi"
  force_stop = true
  machine    = { type = "pc", domain_type = "qemu" }
  boot       = virtclaim_kernel.linux.boot
  serial     = { log_file = %q }
  disks      = { root = { volume = virtclaim_volume_binding.data.volume } }
  run        = { entrypoint = ["/bin/busybox", "sh", "-c"], command = [%q], stop_timeout = 1 }
}
`, linux.Reference, console.Path(), strings.ReplaceAll(script, "${", "$${")))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "size=20")
	console.Await(t, "rows=1")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	for _, command := range []string{"destroy", "start"} {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), command, "web"))(t)
	}
	console.Await(t, "rows=2")
	cli.Must("destroy", "-auto-approve", "-no-color")
	if left := acctest.Must(filepath.Glob(filepath.Join(server.folder, "volume-*")))(t); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}
