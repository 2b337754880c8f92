//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A machine that was migrated outside of Terraform is not recreated on its host, and its disks are not deleted: where hosts share the
// folder of a pool, the guest still uses them.
func TestAccVirtualMachine_Migrated(t *testing.T) {
	l := acctest.Lab(t)
	move := func(from, to *lab.Host) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "domain.xml")
		xml := acctest.Must(from.Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t)
		if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
			t.Fatal(err)
		}
		acctest.Must(from.Virsh(t.Context(), "undefine", "web"))(t)
		acctest.Must(to.Virsh(t.Context(), "define", file))(t)
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "migrated")+`
resource "virtclaim_disk" "root" {
  host       = "host-a"
  name       = "root"
  usage_type = "fast"
  size       = "1Mi"
}
`+machine{log: "/dev/null", disks: []string{"root = { volume = virtclaim_disk.root.volume }"}, more: "running = false"}.hcl(l))
	cli.Must("apply", "-auto-approve", "-no-color")
	move(l.Hosts["host-a"], l.Hosts["host-b"])
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("Machine web was migrated to host host-b", "disk root").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, err := cli.Run("destroy", "-auto-approve", "-no-color", "-refresh=false"); err == nil || !message("it was migrated: host host-b has it, and host host-a does not").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "vol-info", "root", "--pool", "ssd"))(t)
	move(l.Hosts["host-b"], l.Hosts["host-a"])
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "undefine", "web"))(t)

	// A host that does not answer may have it. If no host has it, it is gone.
	if err := l.Hosts["host-b"].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := sync.OnceValue(func() error { return l.Hosts["host-b"].Start(context.WithoutCancel(t.Context())) })
	acctest.Undo(t, func(context.Context) error { return start() })
	acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: A machine is missing or was migrated", "No changes.")
	if out, err := cli.Run("destroy", "-auto-approve", "-no-color", "-refresh=false"); err == nil || !message("that may have it").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	// Nothing may have been deleted before that error.
	if out, err := cli.Run("plan", "-no-color", "-replace=virtclaim_disk.root"); err == nil || !message("Error: Disks of a missing or migrated machine can't be changed").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	cli.Must("destroy", "-auto-approve", "-no-color", "-refresh=false")
}

// virsh migrate leaves the definition on the source by default: a machine that runs on another host is neither started a second time, nor
// changed or removed with its disks.
func TestAccVirtualMachine_MigratedWithDefinitionLeft(t *testing.T) {
	l := acctest.Lab(t)
	a, b := l.Hosts["host-a"], l.Hosts["host-b"]
	cli := acctest.NewCLI(t)
	write := func(more string) {
		cli.Write("main.tf", acctest.Provider(l, "migrated")+`
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = "1Mi"
}

resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  force_stop = true
  disks      = { data = { volume = virtclaim_disk.data.volume } }
`+more+"\n}\n")
	}
	write("")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Must(a.Virsh(t.Context(), "destroy", "web"))(t)
	if err := b.DefineXML(t.Context(), acctest.Must(a.Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t)); err != nil {
		t.Fatal(err)
	}
	acctest.Must(b.Virsh(t.Context(), "start", "web"))(t)
	write("title = \"mine\"")
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("Machine web was migrated to host host-b", "disk data").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, command := range []string{"apply", "destroy"} {
		if out, err := cli.Run(command, "-auto-approve", "-no-color", "-refresh=false"); err == nil || !message("it was migrated: host host-b runs it, and host host-a has its definition").MatchString(out) {
			t.Errorf("%s: %v:\n%s", command, err, out)
		}
	}
	refused := func(words string, args ...string) {
		t.Helper()
		if out, err := cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...); err == nil || !message(words).MatchString(out) {
			t.Errorf("%v: %v:\n%s", args, err, out)
		}
		acctest.Must(a.Virsh(t.Context(), "vol-info", "data", "--pool", "ssd"))(t)
	}
	refused("was migrated: host host-b runs it", "-replace=virtclaim_disk.data", "-target=virtclaim_disk.data")
	refused("Error: Disks of a missing or migrated machine can't be changed", "-replace=virtclaim_disk.data")
	write("lifecycle { ignore_changes = all }")
	cli.Replace("main.tf", `size       = "1Mi"`, `size       = "2Mi"`)
	refused("Error: A disk of another host")
	refused("was migrated: host host-b runs it", "-target=virtclaim_disk.data")

	// With --undefinesource only the machine's state shows that it uses the disk.
	acctest.Must(a.Virsh(t.Context(), "undefine", "web"))(t)
	write("")
	refused("Error: Disks of a missing or migrated machine can't be changed", "-replace=virtclaim_disk.data")
	acctest.Must(b.Virsh(t.Context(), "destroy", "web"))(t)
	acctest.Must(b.Virsh(t.Context(), "undefine", "web"))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A binding may have both hosts of a migration: replacing or removing it would detach the storage from the guest on the other host.
func TestAccVirtualMachine_MigratedWithBinding(t *testing.T) {
	l := acctest.Lab(t)
	a, b := l.Hosts["host-a"], l.Hosts["host-b"]
	lun := acctest.LUN(t, l, false, "")
	cli := acctest.NewCLI(t)
	write := func(disks, more string) {
		cli.Write("main.tf", acctest.Provider(l, "migrated")+fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name        = "data"
  hosts       = ["host-a", "host-b"]
  access_mode = "write-exclusive"
  source      = { iscsi = { portal = %q, iqn = %q, lun = %d } }
}

resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  force_stop = true
  disks      = { %s }
  %s
}
`, l.Target.Portal, lun.IQN, lun.Number, disks, more))
	}
	refused := func(words string, args ...string) {
		t.Helper()
		if out, err := cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...); err == nil || !message(words).MatchString(out) {
			t.Errorf("%v: %v:\n%s", args, err, out)
		}
		acctest.Contains(t, acctest.Must(b.Virsh(t.Context(), "domblklist", "web"))(t), lun.IQN)
	}
	disk, ignored := "data = { volume = virtclaim_volume_binding.data.volume }", "lifecycle { ignore_changes = all }"
	write(disk, "")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Must(a.Virsh(t.Context(), "destroy", "web"))(t)
	if err := b.DefineXML(t.Context(), acctest.Must(a.Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t)); err != nil {
		t.Fatal(err)
	}
	acctest.Must(b.Virsh(t.Context(), "start", "web"))(t)
	refused("was migrated: host host-b runs it", "-replace=virtclaim_volume_binding.data")
	write(disk, ignored)
	refused("was migrated: host host-b runs it, and host host-a has its definition", "-replace=virtclaim_volume_binding.data")

	// With --undefinesource only the other host has it, where an apply finds it.
	acctest.Must(a.Virsh(t.Context(), "undefine", "web"))(t)
	write("", "")
	refused("its guest has to release this before it moves")
	write(disk, "")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
