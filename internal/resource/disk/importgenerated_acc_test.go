//go:build acc

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// adopted are the import blocks of disks by their names in the pool ssd of host-a.
func adopted(names ...string) (blocks string) {
	for _, name := range names {
		blocks += "import {\n  to = virtclaim_disk." + name + "\n  id = \"host-a/ssd/" + name + "\"\n}\n"
	}
	return blocks
}

// Disks that others have made are adopted by the configuration that Terraform generates: an image and overlays over it, one of them over
// another one as an external snapshot leaves it, a raw disk, and an image of less than whole sectors of 4 KiB.
func TestAccDisk_ImportGenerates(t *testing.T) {
	l := acctest.Lab(t)
	virsh(t, l, "vol-create-as", "ssd", "base", "64M", "--format", "qcow2")
	virsh(t, l, "vol-create-as", "ssd", "web", "80M", "--format", "qcow2", "--backing-vol", "base", "--backing-vol-format", "qcow2")
	virsh(t, l, "vol-create-as", "ssd", "db", "64M", "--format", "qcow2", "--backing-vol", "base", "--backing-vol-format", "qcow2")
	virsh(t, l, "vol-create-as", "ssd", "db-snapshot", "64M", "--format", "qcow2", "--backing-vol", "db", "--backing-vol-format", "qcow2")
	virsh(t, l, "vol-create-as", "ssd", "data", "10M", "--format", "raw", "--allocation", "0")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file(l, "seed")), "seed"), make([]byte, 374*1024), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
	cli := acctest.NewCLI(t)
	names := []string{"base", "web", "db", "db-snapshot", "data", "seed"}
	cli.Write("main.tf", acctest.Provider(l, "disks")+adopted(names...))
	out := cli.Must("plan", "-no-color", "-generate-config-out=disks.tf")
	acctest.Contains(t, out, "6 to import, 0 to add, 0 to change, 0 to destroy")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")

	for _, name := range []string{"base", "web", "data"} {
		if strings.Contains(virsh(t, l, "vol-dumpxml", name, "--pool", "ssd"), "virtclaim") {
			t.Errorf("the import has written to %s", name)
		}
	}
	cli.Replace("disks.tf", `"80Mi"`, `"96Mi"`)
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	acctest.Contains(t, virsh(t, l, "vol-info", "web", "--pool", "ssd"), "96.00 MiB")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.DestroyAll()
}

// The literal volume of a generated overlay is replaced by a reference in place.
func TestAccDisk_ImportedOverlayTakesReference(t *testing.T) {
	l := acctest.Lab(t)
	virsh(t, l, "vol-create-as", "ssd", "base", "64M", "--format", "qcow2")
	virsh(t, l, "vol-create-as", "ssd", "web", "64M", "--format", "qcow2", "--backing-vol", "base", "--backing-vol-format", "qcow2")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+adopted("base", "web"))
	cli.Must("plan", "-no-color", "-generate-config-out=disks.tf")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("disks.tf", `
resource "virtclaim_disk" "base" {
  host = "host-a"
  name = "base"
  usage_type = "fast"
  size = "64Mi"
}

resource "virtclaim_disk" "web" {
  host       = "host-a"
  name       = "web"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_disk.base.volume }
}
`)
	out := cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, out, "0 added, 1 changed, 0 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// What was written to after its import without a master is not laid over one that nothing names.
func TestAccDisk_ImportedAndWrittenStaysWithoutMaster(t *testing.T) {
	l := acctest.Lab(t)
	_, source := golden(t, l, "the master")
	virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+source+adopted("root"))
	cli.Must("plan", "-no-color", "-generate-config-out=disk.tf")
	cli.Must("apply", "-auto-approve", "-no-color")
	virsh(t, l, "vol-resize", "root", "65M", "--pool", "ssd")
	cli.Write("disk.tf", disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")))
	if out, err := cli.Run("plan", "-no-color"); err == nil || !message("Written to without a master").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Write("disk.tf", disk("root", `size = "65Mi"`))
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// An imported disk goes to another host with its content, as any other one does.
func TestAccDisk_ImportedMoves(t *testing.T) {
	l := acctest.Lab(t)
	for name, format := range map[string]string{"data": "raw", "db": "qcow2"} {
		virsh(t, l, "vol-create-as", "ssd", name, "10M", "--format", format)
	}
	if err := os.WriteFile(file(l, "data"), append([]byte("what was there"), make([]byte, 10<<20-14)...), 0o600); err != nil {
		t.Fatal(err)
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+adopted("data", "db"))
	cli.Must("plan", "-no-color", "-generate-config-out=disks.tf")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", acctest.Provider(l, "disks"))
	cli.Replace("disks.tf", `"host-a"`, `"host-b"`)
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 2 changed, 0 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	has, err := os.ReadFile(strings.Replace(file(l, "data"), l.Hosts["host-a"].Dir, l.Hosts["host-b"].Dir, 1))
	if err != nil || !strings.HasPrefix(string(has), "what was there") {
		t.Errorf("its content is not on the other host: %v", err)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
