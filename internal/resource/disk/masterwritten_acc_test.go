//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// qemuImg runs qemu-img.
func qemuImg(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img %v: %v: %s", args, err, out)
	}
}

// A golden disk keeps its identity when its file is replaced outside of Terraform, or when an overlay is committed into it: machines over
// it are neither restarted nor started over other content.
func TestAccDisk_MasterOfOtherContent(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	master, top := file(l, "golden"), file(l, "over")
	changed := "the master was deleted, written to or replaced"
	config := func(golden, machine string) string {
		return acctest.Provider(l, "disks") + disk("golden", golden) + disk("over", over("copy-on-write", "virtclaim_disk.golden")) +
			vm(l, console, "", "force_stop = true\n  allow_restart = true\n  "+machine, on("over", "virtclaim_disk.over", ""))
	}
	cli := acctest.NewCLI(t)
	refused := func(want string, args ...string) {
		t.Helper()
		if out, err := cli.Run(append(args, "-auto-approve", "-no-color")...); err == nil || !message(want).MatchString(out) {
			t.Errorf("%s: %v:\n%s", args, err, out)
		}
	}

	raw := "format = \"raw\"\n  size = \"4Mi\""
	cli.Write("main.tf", config(raw, ""))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	if err := os.Rename(master, master+".kept"); err != nil {
		t.Fatal(err)
	}
	qemuImg(t, "create", "-q", "-f", "raw", master, "4M")
	cli.Replace("main.tf", `"128Mi"`, `"160Mi"`)
	refused(changed, "apply")
	if out := cli.Must("plan", "-destroy", "-no-color"); !message("The master of disk", "discards what only its QEMU has").MatchString(out) {
		t.Errorf("the plan of a destroy does not warn of it:\n%s", out)
	}
	acctest.Contains(t, virsh(t, l, "domstate", "web"), "running")
	if err := os.Rename(master+".kept", master); err != nil {
		t.Fatal(err)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")

	cli.Write("main.tf", config(blank, "running = false"))
	cli.Must("apply", "-auto-approve", "-no-color")
	kept := filepath.Join(t.TempDir(), "kept")
	acctest.Must(exec.CommandContext(t.Context(), "cp", "-p", master, kept).CombinedOutput())(t)
	acctest.Must(exec.CommandContext(t.Context(), "qemu-io", "-f", "qcow2", "-c", "write 0 64k", top).CombinedOutput())(t)
	qemuImg(t, "commit", "-q", top)
	cli.Write("main.tf", config(blank, "running = true"))
	refused(changed, "apply")
	acctest.Must(exec.CommandContext(t.Context(), "cp", "-p", kept, master).CombinedOutput())(t)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The overlay of a snapshot is stale once it was committed, and stays beside the disk until it is removed: the machine is not shut down for
// a start that would fail, and no error advises to commit it again.
func TestAccDisk_StaleOverlay(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", blank)+vm(l, console, "", "force_stop = true\n  allow_restart = true", on("root", theDisk, "")))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	virsh(t, l, "snapshot-create-as", "web", "nightly", "--disk-only", "--diskspec", "vda,file="+file(l, "root.nightly"))
	acctest.Contains(t, cli.Must("plan", "-no-color"), "must not be committed again")
	virsh(t, l, "blockcommit", "web", "vda", "--base", file(l, "root"), "--active", "--pivot", "--wait")
	virsh(t, l, "snapshot-delete", "web", "nightly", "--metadata")
	acctest.Must(exec.CommandContext(t.Context(), "touch", file(l, "root")).CombinedOutput())(t) // what its guest writes
	cli.Replace("main.tf", `"128Mi"`, `"160Mi"`)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("which would fail, so the machine was not shut down", "ssd/root.nightly", "would put older data over newer").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	acctest.Contains(t, virsh(t, l, "domstate", "web"), "running")
	virsh(t, l, "vol-delete", "root.nightly", "--pool", "ssd")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A disk that was copied without its master, as by an incremental migration, is not imported as one without a master.
func TestAccDisk_ImportWithoutItsMaster(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	master, copied := file(l, "golden"), file(l, "copied")
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("golden", blank)+disk("copied", blank))
	cli.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_disk.golden")
	qemuImg(t, "create", "-q", "-f", "qcow2", copied, "64M")
	virsh(t, l, "pool-refresh", "ssd")
	err := l.Hosts["host-a"].DefineXML(t.Context(), fmt.Sprintf(`<domain type="qemu"><name>theirs</name><memory>32768</memory><os><type>hvm</type></os><devices>
		<disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file=%q/><backingStore type="file"><format type="qcow2"/><source file=%q/>
		<backingStore/></backingStore><target dev="vda"/></disk></devices></domain>`, copied, master))
	if err != nil {
		t.Fatal(err)
	}
	cli.Must("import", "-no-color", "virtclaim_disk.copied", "host-a/ssd/copied")
	if out, err := cli.Run("plan", "-no-color"); err == nil || !message("A master that the header does not reference", "--copy-storage-inc", "qemu-img rebase -u").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	qemuImg(t, "rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", master, copied)
	virsh(t, l, "pool-refresh", "ssd")
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("golden", blank)+disk("copied", over("copy-on-write", "virtclaim_disk.golden")))
	cli.Must("state", "rm", "virtclaim_disk.copied")
	cli.Must("import", "-no-color", "virtclaim_disk.copied", "host-a/ssd/copied")
	cli.Must("apply", "-auto-approve", "-no-color")
	virsh(t, l, "undefine", "theirs")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// An imported disk of a running guest has its identity in the host's ledger only: QEMU's lock shows that its file was replaced, before the
// machine is destroyed.
func TestAccDisk_ImportedAndReplacedUnderItsGuest(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + vm(l, console, "", "force_stop = true", on("root", theDisk, ""))
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	snapshot := file(l, "snapshot")
	virsh(t, l, "snapshot-create-as", "web", "nightly", "--disk-only", "--diskspec", "vda,file="+snapshot)
	virsh(t, l, "snapshot-delete", "web", "nightly", "--metadata")
	virsh(t, l, "pool-refresh", "ssd")
	cli.Write("main.tf", strings.Replace(config, theDisk+".volume", "virtclaim_disk.snapshot.volume", 1)+disk("snapshot", over("copy-on-write", theDisk)))
	cli.Must("import", "-no-color", "virtclaim_disk.snapshot", "host-a/ssd/snapshot")
	cli.Must("apply", "-auto-approve", "-no-color")
	if err := os.Rename(snapshot, snapshot+".kept"); err != nil {
		t.Fatal(err)
	}
	qemuImg(t, "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", file(l, "root"), snapshot)
	virsh(t, l, "pool-refresh", "ssd")
	out, err := cli.Run("destroy", "-auto-approve", "-no-color", "-target=virtclaim_virtual_machine.web")
	if err == nil || !message("the running guest would lose what it has written").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := os.Rename(snapshot+".kept", snapshot); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The master of an imported overlay is recorded when the overlay is imported, not only when a machine starts with it.
func TestAccDisk_ImportedOverWrittenMaster(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	master, overlay := file(l, "golden"), file(l, "overlay")
	records := func() int { return strings.Count(virsh(t, l, "secret-list"), "virtclaim master of ") }
	before := records()
	config := acctest.Provider(l, "disks") + disk("golden", blank) + disk("overlay", over("copy-on-write", "virtclaim_disk.golden")) +
		disk("clone", over("clone", "virtclaim_disk.golden"))
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_disk.golden")
	qemuImg(t, "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", master, overlay)
	qemuImg(t, "create", "-q", "-f", "qcow2", file(l, "clone"), "64M")
	virsh(t, l, "pool-refresh", "ssd")
	cli.Must("import", "-no-color", "virtclaim_disk.overlay", "host-a/ssd/overlay")
	cli.Must("import", "-no-color", "virtclaim_disk.clone", "host-a/ssd/clone")
	cli.Must("apply", "-auto-approve", "-no-color")
	if now := records(); now != before+1 {
		t.Errorf("%d records were added: want one for the overlay, and none for the clone", now-before)
	}
	acctest.Must(exec.CommandContext(t.Context(), "qemu-io", "-f", "qcow2", "-c", "write 0 64k", master).CombinedOutput())(t)
	cli.Write("main.tf", config+vm(l, acctest.NewConsole(t), "", "force_stop = true", on("overlay", "virtclaim_disk.overlay", "")))
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("the master was deleted, written to or replaced").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A disk of a running machine is not unplugged if its replacement is one that the machine may not have, such as a master.
func TestAccDisk_ExchangedForAMaster(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("data", blank) + disk("golden", blank) +
		disk("over", over("copy-on-write", "virtclaim_disk.golden")) +
		vm(l, console, "", "force_stop = true", on("root", theDisk, ""), on("data", "virtclaim_disk.data", ""))
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	refused := func(by, want string) {
		t.Helper()
		cli.Write("main.tf", strings.Replace(config, "{ volume = virtclaim_disk.data", "{ volume = virtclaim_disk."+by, 1))
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message(want).MatchString(out) {
			t.Errorf("%v:\n%s", err, out)
		}
		acctest.Contains(t, virsh(t, l, "domblklist", "web"), file(l, "data"))
	}
	refused("golden", "it is a master")
	master := file(l, "golden")
	if err := os.Rename(master, master+".kept"); err != nil {
		t.Fatal(err)
	}
	refused("over", "the master was deleted, written to or replaced")
	if err := os.Rename(master+".kept", master); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
	cli.Write("main.tf", config)
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
