//go:build acc

package virtualmachine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// externalDisk is a blank disk of 1 MiB.
func externalDisk(name, more string) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = "host-a"
  name       = %[1]q
  usage_type = "fast"
  %[2]s
}
`, name, more)
}

// A snapshot, copy or backup of a running or stopped machine that is made outside of Terraform is reported and never reverted; operations
// that would lose it are refused with a remedy, and the remedy works.
func TestAccVirtualMachine_ExternalSnapshots(t *testing.T) {
	l := acctest.Lab(t)
	host := l.Hosts["host-a"]
	folder := filepath.Join(host.Dir, "pools", "ssd")
	virsh := func(args ...string) string {
		t.Helper()
		return acctest.Must(host.Virsh(t.Context(), args...))(t)
	}
	cli := acctest.NewCLI(t)
	const size, over = `size = "1Mi"`, "copy_mode = \"copy-on-write\"\n  source = { volume = virtclaim_disk.lower.volume }"
	write := func(title, rootSize, volume, more string) {
		cli.Write("main.tf", acctest.Provider(l, "external")+externalDisk("lower", size)+externalDisk("root", over+"\n  "+rootSize)+more+machine{
			disks: []string{"root = { volume = virtclaim_disk." + volume + ".volume }"}, log: "/dev/null",
			more: "force_stop = true\n  title = \"" + title + "\"",
		}.hcl(l))
	}
	refused := func(what string, parts []string, args ...string) {
		t.Helper()
		before := virsh("dumpxml", "web") + virsh("dumpxml", "web", "--inactive")
		out, err := cli.Run(append(args, "-auto-approve", "-no-color")...)
		if err == nil || !message(parts...).MatchString(out) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
		if after := virsh("dumpxml", "web") + virsh("dumpxml", "web", "--inactive"); after != before {
			t.Errorf("%s: the domain was changed:\n%s", what, after)
		}
	}
	unchanged := func(parts ...string) {
		t.Helper()
		out := cli.Must("plan", "-no-color")
		if !strings.Contains(out, "No changes.") || len(parts) > 0 && !message(parts...).MatchString(out) || len(parts) == 0 && strings.Contains(out, "Warning: Disk") {
			t.Errorf("the plan is not as expected:\n%s", out)
		}
	}
	write("a", "", "root", "")
	cli.Must("apply", "-auto-approve")
	virsh("suspend", "web")

	// An external snapshot of a running domain.
	lower := acctest.StoredAt(t, filepath.Join(folder, "lower"), 0, 4096)
	virsh("snapshot-create-as", "web", "nightly", "--disk-only")
	top, base := filepath.Join(folder, "root.nightly"), filepath.Join(folder, "root")
	commit := fmt.Sprintf("virsh blockcommit web vda --base %s --active --pivot --wait, then: virsh snapshot-delete web nightly --metadata", base)
	unchanged("Disk root of machine web", "overlay "+top, "snapshot nightly", commit)
	write("b", "", "root", "")
	refused("an update", []string{"machine could not be updated", top, commit}, "apply")
	write("a", `size = "2Mi"`, "root", "")
	commands := strings.Split(commit, ", then: ")
	refused("growing", []string{"could not be grown", top, commands[0]}, "apply")
	write("a", "", "root", externalDisk("copy", "copy_mode = \"clone\"\n  source = { volume = virtclaim_disk.root.volume }"))
	refused("a clone", []string{"could not be made", top, commands[0]}, "apply", "-target=virtclaim_disk.copy")
	write("a", "", "root", "")
	refused("destroying", []string{"could not be removed", top, commit}, "destroy")
	refused("destroying a disk", []string{"could not be removed", top, commands[0]}, "apply", "-replace=virtclaim_disk.root")
	for _, command := range commands {
		virsh(strings.Fields(command)[1:]...)
	}
	if err := os.Remove(top); err != nil {
		t.Error(err)
	}
	if after := acctest.StoredAt(t, filepath.Join(folder, "lower"), 0, 4096); after != lower {
		t.Error("the commit went on into the master")
	}
	unchanged()

	// Block jobs: a copy, and a backup, which is not in the XML.
	virsh("blockcopy", "web", "vda", "--dest", filepath.Join(folder, "root.copy"), "--transient-job", "--wait")
	unchanged("Disk root of machine web", "block job (copy)")
	write("b", "", "root", "")
	refused("an update during a copy", []string{"block job (copy)", "virsh blockjob web vda --abort"}, "apply")
	virsh("blockjob", "web", "vda", "--abort")
	backup := filepath.Join(t.TempDir(), "backup.xml")
	text := fmt.Sprintf(`<domainbackup mode='pull'><server transport='unix' socket='%s'/><disks><disk name='vda' type='file'><scratch file='%s'/></disk></disks></domainbackup>`,
		filepath.Join(host.Dir, "b.sock"), filepath.Join(folder, "scratch"))
	if err := os.WriteFile(backup, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh("backup-begin", "web", backup)
	refused("an update during a backup", []string{"a backup of disk root", "virsh domjobabort web"}, "apply")
	virsh("domjobabort", "web")
	_ = os.Remove(filepath.Join(folder, "root.copy"))
	cli.Must("apply", "-auto-approve")
	unchanged()

	// A snapshot of a domain that is off, whose definition lacks the chain below.
	virsh("destroy", "web")
	virsh("snapshot-create-as", "web", "cold", "--disk-only")
	top = filepath.Join(folder, "root.cold")
	out := cli.Must("plan", "-no-color")
	if !message("Disk root of machine web", "overlay "+top, "snapshot cold", "virsh start web", "--base "+base+" --active").MatchString(out) || strings.Contains(out, "images") {
		t.Errorf("the snapshot of a domain that is off:\n%s", out)
	}
	refused("a start", []string{"machine could not be updated", top, "virsh start web"}, "apply")
	virsh("start", "web", "--paused")
	virsh("blockcommit", "web", "vda", "--base", base, "--active", "--pivot", "--wait")
	virsh("snapshot-delete", "web", "cold", "--metadata")
	if err := os.Remove(top); err != nil {
		t.Error(err)
	}
	unchanged()

	// A snapshot of a running domain that is adopted.
	virsh("snapshot-create-as", "web", "warm", "--disk-only")
	write("b", "", "warm", externalDisk("warm", over))
	cli.Replace("main.tf", `name       = "warm"`, `name       = "root.warm"`)
	cli.Replace("main.tf", `"root.warm"
  usage_type = "fast"
  copy_mode = "copy-on-write"
  source = { volume = virtclaim_disk.lower.volume }`, `"root.warm"
  usage_type = "fast"
  copy_mode = "copy-on-write"
  source = { volume = virtclaim_disk.root.volume }`)
	cli.Must("import", "-no-color", "virtclaim_disk.warm", "host-a/ssd/root.warm")
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 2 changed, 0 destroyed") {
		t.Errorf("the overlay was not just adopted:\n%s", out)
	}
	virsh("snapshot-delete", "web", "warm", "--metadata")
	unchanged()

	// A snapshot that is discarded: then all can be destroyed.
	virsh("snapshot-create-as", "web", "unwanted", "--disk-only")
	virsh("destroy", "web")
	virsh("detach-disk", "web", "vda", "--config")
	virsh("snapshot-delete", "web", "unwanted", "--metadata")
	if err := os.Remove(filepath.Join(folder, "root.unwanted")); err != nil {
		t.Error(err)
	}
	cli.Must("destroy", "-auto-approve")
}

// A machine that was pivoted to a copy of its disk swaps disks with another one: that one must not get the outdated original, and loses
// nothing for it.
func TestAccVirtualMachine_CopiedDiskIsNotMoved(t *testing.T) {
	l := acctest.Lab(t)
	host := l.Hosts["host-a"]
	virsh := func(args ...string) string {
		t.Helper()
		return acctest.Must(host.Virsh(t.Context(), args...))(t)
	}
	cli := acctest.NewCLI(t)
	write := func(one, two string) {
		config := acctest.Provider(l, "external") + externalDisk("p1", `size = "1Mi"`) + externalDisk("p2", `size = "1Mi"`)
		for name, disk := range map[string]string{"one": one, "two": two} {
			config += machine{
				name: name, disks: []string{"root = { volume = virtclaim_disk." + disk + ".volume }"}, log: "/dev/null",
				more: "force_stop = true",
			}.hcl(l)
		}
		cli.Write("main.tf", config)
	}
	write("p1", "p2")
	cli.Must("apply", "-auto-approve")
	copied := filepath.Join(host.Dir, "pools", "ssd", "p1.copy")
	virsh("blockcopy", "one", "vda", "--dest", copied, "--transient-job", "--wait", "--pivot")
	before := virsh("domblklist", "one") + virsh("domblklist", "two")
	write("p2", "p1")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if why := message("domain one opens", copied+" and not its volume"); err == nil || !why.MatchString(out) || strings.Contains(out, "unplugged") {
		t.Errorf("%v:\n%s", err, out)
	}
	if after := virsh("domblklist", "one") + virsh("domblklist", "two"); after != before {
		t.Errorf("the disks were changed:\n%s\nbefore:\n%s", after, before)
	}
	virsh("destroy", "one")
	virsh("undefine", "one")
	write("p1", "p2")
	virsh("suspend", "two") // its guest may still be booting, and ignore its power button
	cli.Must("destroy", "-auto-approve")
	if err := os.Remove(copied); err != nil {
		t.Error(err)
	}
}

// The same for the storage of a claim, which any host of the binding may open.
func TestAccVirtualMachine_CopiedClaimIsNotMoved(t *testing.T) {
	l := acctest.Lab(t)
	host := l.Hosts["host-a"]
	virsh := func(args ...string) string {
		t.Helper()
		return acctest.Must(host.Virsh(t.Context(), args...))(t)
	}
	acctest.Claim(t, l, "copied", "data", acctest.LUN(t, l, false, acctest.Known))
	cli := acctest.NewCLI(t)
	write := func(one, two string) {
		config := acctest.Provider(l, "copied") + claimBinding("copied", "data", "write-exclusive", "host-a", "host-b")
		for name, disks := range map[string]string{"one": one, "two": two} {
			m := machine{name: name, log: "/dev/null", more: "force_stop = true"}
			if m.host = "host-a"; name == "two" {
				m.host = "host-b"
			}
			if disks != "" {
				m.disks = []string{disk("data", disks, "virtio")}
			}
			config += m.hcl(l)
		}
		cli.Write("main.tf", config)
	}
	write("data", "")
	cli.Must("apply", "-auto-approve")
	copied := filepath.Join(host.Dir, "pools", "ssd", "data.copy")
	virsh("blockcopy", "one", "vda", "--dest", copied, "--transient-job", "--wait", "--pivot")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || !message("not only virtclaim's").MatchString(plan) {
		t.Errorf("the copy's settings are shown as changes of the disk, or without a warning: %s", plan)
	}
	write("", "data")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if why := message("domain one opens", copied+" and not its volume"); err == nil || !why.MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if got := virsh("domblklist", "one"); !strings.Contains(got, copied) {
		t.Errorf("the first machine has lost its disk:\n%s", got)
	}
	if got := acctest.Must(l.Hosts["host-b"].Virsh(t.Context(), "domblklist", "two"))(t); strings.Contains(got, "vda") {
		t.Errorf("the second machine has got the disk:\n%s", got)
	}
	virsh("destroy", "one")
	virsh("undefine", "one")
	write("", "")
	acctest.Must(l.Hosts["host-b"].Virsh(t.Context(), "suspend", "two"))(t) // its guest may still be booting, and ignore its power button
	cli.Must("destroy", "-auto-approve")
	if err := os.Remove(copied); err != nil {
		t.Error(err)
	}
}
