//go:build acc

package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// overlays are n disks over the disk golden, and a machine on each, which is off.
func overlays(n int) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" "over" {
  count      = %[1]d
  host       = "host-a"
  name       = "over-${count.index}"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_disk.golden.volume }
}

resource "virtclaim_virtual_machine" "off" {
  count   = %[1]d
  host    = "host-a"
  name    = "off-${count.index}"
  memory  = "32Mi"
  running = false
  machine = { type = "pc", domain_type = "qemu" }
  disks   = { root = { volume = virtclaim_disk.over[count.index].volume } }
}
`, n)
}

// writer is a machine that is off, and would write to the disk golden.
const writer = `
resource "virtclaim_virtual_machine" "writer" {
  host    = "host-a"
  name    = "writer"
  memory  = "32Mi"
  running = false
  machine = { type = "pc", domain_type = "qemu" }
  disks   = { root = { volume = virtclaim_disk.golden.volume } }
}
`

// Any number of machines have overlays of one disk, and no machine may write to it while there is an overlay. A refused configuration can
// be destroyed.
func TestAccDisk_MasterOfManyMachines(t *testing.T) {
	l := acctest.Lab(t)
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, rawImage(), 0o600); err != nil {
		t.Fatal(err)
	}
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	terraform := func(command string, parts ...string) (string, error) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+
			disk("golden", fmt.Sprintf("size = \"8Mi\"\n source = { file = { path = %q } }", path))+strings.Join(parts, ""))
		if command == "apply" {
			return cli.Run("apply", "-auto-approve", "-no-color")
		}
		return cli.Run(command, "-no-color")
	}
	says := func(words, command string, fails bool, parts ...string) {
		t.Helper()
		if out, err := terraform(command, parts...); (err != nil) != fails || !message(words).MatchString(out) {
			t.Fatalf("%s does not say %q: %v: %s", command, words, err, out)
		}
	}
	runs := disk("live", over("copy-on-write", "virtclaim_disk.golden")) + vm(l, console, "", "", on("root", "virtclaim_disk.live", ""))
	says("Apply complete", "apply", false, overlays(1))
	says("Apply complete", "apply", false, overlays(4), runs)
	says("No changes.", "plan", false, overlays(4), runs)
	cli.Must("state", "rm", "virtclaim_disk.golden")
	cli.Must("import", "-no-color", "virtclaim_disk.golden", "host-a/ssd/golden")
	says("0 added, 0 changed", "apply", false, overlays(4), runs)
	says("A master is read-only", "plan", false, overlays(4), runs, writer)
	console.Await(t, "READY")
	cli.Must("destroy", "-auto-approve", "-no-color")

	// An overlay that no machine has is known to its pool only.
	old := disk("old", over("copy-on-write", "virtclaim_disk.golden"))
	says("Apply complete", "apply", false, old)
	cli.Replace("terraform.tfstate", `"access_mode": "read-shared"`, `"access_mode": "write-exclusive"`) // as older versions wrote it
	says("No changes.", "plan", false, old)
	virsh(t, l, "vol-create-as", "ssd", "other", "8M", "--format", "qcow2", "--backing-vol", "golden", "--backing-vol-format", "raw")
	says("it is a master, and so read-only: these volumes are overlays of", "apply", true, writer)
	virsh(t, l, "vol-delete", "other", "ssd")
	says("Apply complete", "apply", false, overlays(1))
	says("Apply complete", "apply", false, writer) // the overlay is destroyed, and the machine created, in one apply
	says("Apply complete", "apply", false)
	says("A master is read-only", "apply", true, overlays(1), writer)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// An overlay that was created outside of Terraform may name its master by another path of that file, which is still its master.
func TestAccDisk_MasterByAnotherPath(t *testing.T) {
	l := acctest.Lab(t)
	folder := filepath.Dir(file(l, "golden"))
	dir := t.TempDir()
	if err := errors.Join(os.Symlink(folder, filepath.Join(dir, "pool")), os.Symlink(file(l, "golden"), filepath.Join(dir, "golden"))); err != nil {
		t.Fatal(err)
	}
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "disks") + disk("golden", blank) + disk("golden-2", blank)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	for _, backing := range []string{
		filepath.Join(dir, "pool", "golden"), "json:{'driver':'qcow2','file':{'driver':'file','filename':'" + filepath.Join(dir, "golden") + "'}}",
		"blkdebug::/proc/self/root" + file(l, "golden"),
	} {
		theirs := filepath.Join(folder, "theirs")
		acctest.Must(exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", "-u", "-F", "qcow2", "-b", backing, theirs, "1M").CombinedOutput())(t)
		if out, err := cli.Run("destroy", "-auto-approve", "-no-color", "-target=virtclaim_disk.golden"); err == nil ||
			!message("other volumes are overlays of it, which would be lost with it: ssd/theirs").MatchString(out) {
			t.Errorf("%s: %v:\n%s", backing, err, out)
		}
		cli.Write("main.tf", config+strings.Replace(writer, "running = false", "running = true", 1))
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("it is a master, and so read-only").MatchString(out) {
			t.Errorf("%s: %v:\n%s", backing, err, out)
		}
		cli.Write("main.tf", config)
		cli.Must("apply", "-auto-approve", "-no-color")
		if err := os.Remove(theirs); err != nil {
			t.Fatal(err)
		}
	}
	// A link to a file of another name is no path of it.
	acctest.Must(exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2", "-u", "-F", "qcow2", "-b",
		filepath.Join(dir, "pool", "golden-2"), filepath.Join(folder, "theirs"), "1M").CombinedOutput())(t)
	endRescue := acctest.Rescue(t, l.Hosts["host-a"], "qcow2", filepath.Join(dir, "golden"))
	if out, err := cli.Run("destroy", "-auto-approve", "-no-color", "-target=virtclaim_disk.golden"); err == nil ||
		!message("a domain has a file of that name by another path, which may be the same file: "+filepath.Join(dir, "golden")+" of domain rescue").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	endRescue()
	cli.Must("destroy", "-auto-approve", "-no-color", "-target=virtclaim_disk.golden")
	if err := os.Remove(filepath.Join(folder, "theirs")); err != nil {
		t.Fatal(err)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
