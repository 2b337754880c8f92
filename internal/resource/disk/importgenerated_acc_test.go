//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// adopted are the import blocks of disks by their names in the pool ssd of host-a.
func adopted(names ...string) (blocks string) {
	for _, name := range names {
		blocks += "import {\n  to = virtclaim_disk." + name + "\n  id = \"host-a/ssd/" + name + "\"\n}\n"
	}
	return blocks
}

// overlaid makes a qcow2 volume over another one.
func overlaid(t *testing.T, l *lab.Lab, name, size, below, format string) {
	t.Helper()
	virsh(t, l, "vol-create-as", "ssd", name, size, "--format", "qcow2", "--backing-vol", below, "--backing-vol-format", format)
}

// keeper defines a domain that opens volumes as qcow2, until the returned function is called.
func keeper(t *testing.T, l *lab.Lab, names ...string) (undefine func()) {
	t.Helper()
	disks := ""
	for n, name := range names {
		disks += fmt.Sprintf("<disk type='file'><driver name='qemu' type='qcow2'/><source file='%s'/><target dev='vd%c' bus='virtio'/></disk>",
			file(l, name), 'a'+n)
	}
	if err := l.Hosts["host-a"].DefineXML(t.Context(), `<domain type='qemu'><name>keeper</name><memory unit='MiB'>32</memory>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><devices>`+disks+"</devices></domain>"); err != nil {
		t.Fatal(err)
	}
	return func() { virsh(t, l, "undefine", "keeper") }
}

// Disks that others have made are adopted by the configuration that Terraform generates: an image and overlays over it, one of them over
// another one as an external snapshot leaves it, one over an image that is opened as raw, a raw disk, and one of less than whole sectors.
func TestAccDisk_ImportGenerates(t *testing.T) {
	l := acctest.Lab(t)
	virsh(t, l, "vol-create-as", "ssd", "base", "64M", "--format", "qcow2")
	overlaid(t, l, "web", "80M", "base", "qcow2")
	overlaid(t, l, "db", "64M", "base", "qcow2")
	overlaid(t, l, "db-snapshot", "64M", "db", "qcow2")
	overlaid(t, l, "odd", "64M", "web", "raw") // whose header a guest may have written
	virsh(t, l, "vol-create-as", "ssd", "data", "10M", "--format", "raw", "--allocation", "0")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file(l, "seed")), "seed"), make([]byte, 374*1024), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
	undefine := keeper(t, l, "web", "db-snapshot", "odd")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+adopted("base", "web", "db-snapshot", "odd", "data", "seed"))
	out := cli.Must("plan", "-no-color", "-generate-config-out=disks.tf")
	acctest.Contains(t, out, "6 to import, 0 to add, 0 to change, 0 to destroy")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	if odd := cli.Must("state", "show", "-no-color", "virtclaim_disk.odd"); strings.Contains(odd, file(l, "base")) {
		t.Errorf("what is opened as raw has a master:\n%s", odd)
	}
	undefine()
	for _, name := range []string{"base", "web", "data"} {
		if strings.Contains(virsh(t, l, "vol-dumpxml", name, "--pool", "ssd"), "virtclaim") {
			t.Errorf("the import has written to %s", name)
		}
	}
	cli.Must("destroy", "-auto-approve", "-no-color", "-target=virtclaim_disk.odd")
	cli.Replace("disks.tf", `"80Mi"`, `"96Mi"`)
	cli.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_disk.web")
	acctest.Contains(t, virsh(t, l, "vol-info", "web", "--pool", "ssd"), "96.00 MiB")
	cli.Must("destroy", "-auto-approve", "-no-color", "-target=virtclaim_disk.db-snapshot")
	virsh(t, l, "vol-delete", "db", "--pool", "ssd")
	cli.DestroyAll()
}

// A head that no domain trusts is not followed: the plan asks what it is.
func TestAccDisk_ImportOfUnprovenHead(t *testing.T) {
	l := acctest.Lab(t)
	virsh(t, l, "vol-create-as", "ssd", "victim", "1M", "--format", "qcow2")
	overlaid(t, l, "evil", "1M", "victim", "qcow2")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+adopted("evil"))
	out, err := cli.Run("plan", "-no-color", "-generate-config-out=disk.tf")
	if err == nil || !message("An overlay without its master").MatchString(out) || !message(`format = "raw"`).MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	written, err := os.ReadFile(filepath.Join(cli.Dir, "disk.tf"))
	if err != nil || strings.Contains(string(written), "victim") {
		t.Errorf("%v: the configuration follows the head:\n%s", err, written)
	}
	cli.Write("disk.tf", disk("evil", "format = \"raw\"\n  size = \"1Mi\""))
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 imported, 0 added, 1 changed, 0 destroyed")
	cli.Must("destroy", "-auto-approve", "-no-color")
	virsh(t, l, "vol-delete", "victim", "--pool", "ssd")
}

// The literal volume of a generated overlay is replaced by a reference in place.
func TestAccDisk_ImportedOverlayTakesReference(t *testing.T) {
	l := acctest.Lab(t)
	virsh(t, l, "vol-create-as", "ssd", "base", "64M", "--format", "qcow2")
	overlaid(t, l, "web", "64M", "base", "qcow2")
	undefine := keeper(t, l, "web")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+adopted("base", "web"))
	cli.Must("plan", "-no-color", "-generate-config-out=disks.tf")
	cli.Must("apply", "-auto-approve", "-no-color")
	undefine()
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
