//go:build acc

package virtualmachine_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// unreleased is the commit that is compared with as long as there is no release. Its states are refused, what it has recorded is read.
const unreleased = "fabf8d9411aa6bc4a523e51399557c6a3ab359a8"

// earlierProvider builds the provider of the last release, and returns the folder that it is in.
func earlierProvider(t *testing.T) (bin string, isReleased bool) {
	t.Helper()
	release := acctest.Must(lab.LastRelease(t.Context(), acctest.Must(lab.Root())(t)))(t)
	earlier := cmp.Or(release, unreleased)
	t.Logf("the earlier provider is that of %s", earlier)
	source, bin := t.TempDir(), t.TempDir()
	git := exec.CommandContext(t.Context(), "git", "archive", earlier)
	git.Dir = acctest.Must(lab.Root())(t)
	archive, err := git.Output()
	if err != nil {
		t.Fatalf("the commit %s is needed: git fetch --unshallow. %v", earlier, err)
	}
	unpack(t, archive, source)
	for _, args := range [][]string{{"generate", "./internal/guestinit"}, {"build", "-o", bin + "/", "."}} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = source
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	return bin, release != ""
}

// unpack writes the files of an archive below a folder.
func unpack(t *testing.T, archive []byte, folder string) {
	t.Helper()
	root := acctest.Must(os.OpenRoot(folder))(t)
	defer func() { _ = root.Close() }()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(head.Name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(head.Name, acctest.Must(io.ReadAll(r))(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// everyKind is a configuration with each resource and each source of disks, but for container images.
func everyKind(t *testing.T, l *lab.Lab) string {
	t.Helper()
	acctest.Claim(t, l, "earlier", "golden", acctest.LUN(t, l, true, "golden"))
	acctest.Claim(t, l, "earlier", "filled", acctest.LUN(t, l, false, ""))
	file := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(file, bytes.Repeat([]byte("a disk of some length"), 50000), 0o600); err != nil {
		t.Fatal(err)
	}
	direct, made := acctest.LUN(t, l, false, ""), acctest.LUN(t, l, false, "")
	_, port, _ := strings.Cut(l.Target.Portal, ":")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "iscsi: {host: {name: 127.0.0.1, port: %s}, portal: %q, lun: %d}", port, made.IQN, made.Number)
	}))
	t.Cleanup(server.Close)
	return acctest.Provider(l, "earlier") + fmt.Sprintf(`
resource "virtclaim_volume_binding" "claim" {
  name        = "golden"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = "earlier", claim_name = "golden" } }
}

resource "virtclaim_volume_binding" "direct" {
  name   = "direct"
  hosts  = ["host-a"]
  source = { iscsi = { portal = %[3]q, iqn = %[4]q, lun = %[5]d } }
}

resource "virtclaim_volume_binding" "dynamic" {
  name   = "dynamic"
  hosts  = ["host-a"]
  source = { dynamic = { parameters = { size = "1Gi" }, server = { url = %[1]q } } }
}

resource "virtclaim_volume_binding" "filled" {
  name   = "filled"
  hosts  = ["host-a"]
  source = { persistent_volume_claim = { namespace = "earlier", claim_name = "filled" } }
}

resource "virtclaim_volume_content" "filled" {
  target = virtclaim_volume_binding.filled.volume
  source = { file = { path = %[2]q } }
}

locals {
  disks = {
    blank       = { size = "1Gi" }
    raw         = { size = "8Mi", format = "raw" }
    overlay     = { copy_mode = "copy-on-write", source = { volume = virtclaim_volume_binding.claim.volume } }
    read        = { copy_mode = "copy-on-read", source = { volume = virtclaim_volume_binding.claim.volume } }
    clone       = { copy_mode = "clone", source = { volume = virtclaim_volume_binding.claim.volume } }
    file        = { source = { file = { path = %[2]q } } }
    seed        = { source = { cloud_init = { user_data = "#cloud-config\nhostname: a\n" } } }
    environment = { source = { environment = { variables_wo = { A = "b" }, variables_wo_version = 1 } } }
  }
}

resource "virtclaim_disk" "all" {
  for_each   = local.disks
  host       = "host-a"
  name       = each.key
  usage_type = "fast"
  size       = try(each.value.size, null)
  format     = try(each.value.format, null)
  copy_mode  = try(each.value.copy_mode, null)
  source     = try(each.value.source, null)
}

resource "virtclaim_virtual_machine" "all" {
  host        = "host-a"
  name        = "all"
  memory      = "64Mi"
  max_memory  = "128Mi"
  running     = false
  title       = "all"
  description = "of\neverything"
  machine     = { type = "q35", domain_type = "qemu", hotplug_ports = 3 }
  cpu         = { vcpus = 1, max_vcpus = 4, mode = "custom", model = "Nehalem", topology = { sockets = 1, cores = 2, threads = 2 } }
  boot        = { kernel = "/boot/vmlinuz", cmdline = "a=b" }
  tpm         = {}
  graphics    = { type = "vnc", listen = "::1" }
  video       = { model = "vga", vram = 8192 }
  rng         = {}
  watchdog    = {}
  console     = {}
  guest_agent = true
  filesystems = { a = { source = "/srv", driver = "9p", target = "data" } }
  devices_xml = "<sound model='ac97'/>"
  interfaces  = { lan = { user = true, model = "e1000" } }
  disks = merge(
    { for key, disk in virtclaim_disk.all : key => { volume = disk.volume, bus = "scsi" } if key != "seed" },
    {
      seed   = { volume = virtclaim_disk.all["seed"].volume, device = "cdrom" }
      filled = { volume = virtclaim_volume_content.filled.volume, boot_order = 1, cache = "none", discard = "unmap" }
      direct = { volume = virtclaim_volume_binding.direct.volume }
      made   = { volume = virtclaim_volume_binding.dynamic.volume }
  })
}
`, server.URL+"/volume", file, l.Target.Portal, direct.IQN, direct.Number)
}

// A state of the last release is planned without a difference, and destroyed. One of an earlier, unreleased form is refused with a
// sentence, and nothing changes.
func TestAccState_OfEarlierProvider(t *testing.T) {
	l := acctest.Lab(t)
	bin, isReleased := earlierProvider(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", everyKind(t, l))
	before := cli.WithProvider(bin)
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = before.Run("destroy", "-auto-approve", "-no-color")
		}
	})
	before.Must("apply", "-auto-approve", "-no-color")
	if isReleased {
		cli.Must("plan", "-detailed-exitcode", "-no-color")
		cli.Must("destroy", "-auto-approve", "-no-color")
		return
	}
	for _, command := range []string{"plan", "destroy"} {
		out, err := cli.Run(command, "-no-color", "-input=false")
		if err == nil || !message("State of an unreleased version", "Nothing has been changed", "terraform import").MatchString(out) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	before.Must("plan", "-detailed-exitcode", "-no-color")
	before.Must("destroy", "-auto-approve", "-no-color")
}

// What an earlier provider has recorded on hosts and claims is read: an import goes on with it, and adds and destroys nothing.
func TestAccState_OfEarlierProviderIsImported(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	acctest.Claim(t, l, "earlier", "imported", acctest.LUN(t, l, true, "golden"))
	cli.Write("main.tf", acctest.Provider(l, "earlier")+`
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = "earlier", claim_name = "imported" } }
}

resource "virtclaim_disk" "root" {
  host       = "host-a"
  name       = "root"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.golden.volume }
}

resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  running    = false
  machine    = { type = "pc", domain_type = "qemu" }
  disks      = { root = { volume = virtclaim_disk.root.volume }, golden = { volume = virtclaim_volume_binding.golden.volume } }
}
`)
	bin, _ := earlierProvider(t)
	cli.WithProvider(bin).Must("apply", "-auto-approve", "-no-color")
	cli.Must("state", "rm", "virtclaim_volume_binding.golden", "virtclaim_disk.root", "virtclaim_virtual_machine.web")
	for _, object := range [][2]string{
		{"virtclaim_volume_binding.golden", "earlier/imported/golden"},
		{"virtclaim_disk.root", "host-a/ssd/root"},
		{"virtclaim_virtual_machine.web", "host-a/web"},
	} {
		cli.Must("import", "-no-color", object[0], object[1])
	}
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added,", " 0 destroyed")
	cli.Must("plan", "-detailed-exitcode", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
