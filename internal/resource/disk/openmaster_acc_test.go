//go:build acc

package disk_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// QEMU has the only copy of a master that was deleted under a running machine: Terraform never unplugs the overlay until the machine is
// shut down.
func TestAccDisk_MasterOfARunningMachine(t *testing.T) {
	l := acctest.Lab(t)
	for name, master := range map[string]struct{ config, address, file string }{
		"a disk":           {disk("golden", blank), "virtclaim_disk.golden", file(l, "golden")},
		"a binding's file": {"", "virtclaim_volume_binding.data", filepath.Join(t.TempDir(), "disk.img")},
	} {
		t.Run(name, func(t *testing.T) {
			if master.config == "" {
				if err := os.WriteFile(master.file, make([]byte, 1<<20), 0o644); err != nil {
					t.Fatal(err)
				}
				master.config = goldenFile(master.file)
			}
			console := acctest.NewConsole(t)
			config := acctest.Provider(l, "disks") + master.config + disk("over", over("copy-on-write", master.address))
			machine := vm(l, console, "", "force_stop = true\n  allow_restart = true", on("over", "virtclaim_disk.over", ""))
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", config+machine)
			cli.Must("apply", "-auto-approve", "-no-color")
			console.Await(t, "READY")
			if err := os.Rename(master.file, master.file+".kept"); err != nil {
				t.Fatal(err)
			}
			virsh(t, l, "pool-refresh", "ssd")
			refused := func(args ...string) {
				t.Helper()
				out, err := cli.Run(append(args, "-auto-approve", "-no-color")...)
				if err == nil || !message("the master was deleted, written to or replaced", "To save what its guest has").MatchString(out) {
					t.Errorf("%s: %v:\n%s", args, err, out)
				}
				if disks := virsh(t, l, "domblklist", "web"); !strings.Contains(disks, file(l, "over")) {
					t.Errorf("%s: the machine has lost its disk:\n%s", args, disks)
				}
			}
			refused("apply", "-replace=virtclaim_disk.over")
			refused("apply", "-replace=virtclaim_virtual_machine.web")
			if name != "a disk" { // whose own checks refuse these
				refused("apply", "-replace="+master.address)
				if err := os.Mkdir(master.file, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			refused("destroy", "-target=virtclaim_virtual_machine.web")
			if err := os.RemoveAll(master.file); err != nil {
				t.Fatal(err)
			}
			cli.Replace("main.tf", `"128Mi"`, `"160Mi"`)
			refused("apply")
			cli.Write("main.tf", config)
			refused("apply")
			cli.Write("main.tf", config+strings.Replace(machine, "disks =", "running = false\n  disks =", 1))
			if out := cli.Must("plan", "-no-color"); !message("The master of disk", "discards what only its QEMU has").MatchString(out) {
				t.Errorf("the plan does not warn:\n%s", out)
			}
			cli.Must("apply", "-auto-approve", "-no-color")
			if err := os.Rename(master.file+".kept", master.file); err != nil {
				t.Fatal(err)
			}
			virsh(t, l, "pool-refresh", "ssd")
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}

// A storage pool and its files are moved to another folder: an overlay is not recreated because its master has another path.
func TestAccDisk_MasterMovesWithItsPool(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("golden", blank)+disk("over", over("copy-on-write", "virtclaim_disk.golden"))+
		strings.NewReplacer("virtclaim_disk.golden", "virtclaim_disk.over").Replace(writer))
	cli.Must("apply", "-auto-approve", "-no-color")
	folder := filepath.Dir(file(l, "golden"))
	moved := filepath.Join(filepath.Dir(folder), "moved")
	if err := os.Rename(folder, moved); err != nil {
		t.Fatal(err)
	}
	moveSSD(t, l, moved)
	defer func() {
		cli.Must("destroy", "-auto-approve", "-no-color")
		if err := os.Rename(moved, folder); err != nil {
			t.Fatal(err)
		}
		moveSSD(t, l, folder)
	}()
	cli.Replace("main.tf", "running = false", "running = true\n  force_stop = true\n  timeouts = { update = \"1m\", delete = \"10s\" }")
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || strings.Contains(out, "must be replaced") {
		t.Errorf("%v:\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "qemu-img", "rebase", "-u", "-F", "qcow2", "-b", filepath.Join(moved, "golden"), filepath.Join(moved, "over")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	virsh(t, l, "pool-refresh", "ssd")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
}
