//go:build acc

package disk_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// An imported overlay of network storage, which its header does not name, is adopted with the master that its machine has, and with no
// other. Another pool, size or format than the disk's is refused, too. The disk is not changed by that.
func TestAccDisk_ImportContradictsChain(t *testing.T) {
	l := acctest.Lab(t)
	_, bindings := golden(t, l, "the master")
	acctest.Claim(t, l, "disks", "other", acctest.LUN(t, l, false, "another"))
	bindings += binding("other", "read-shared", "host-a")
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	right := over("copy-on-write", "virtclaim_volume_binding.golden")
	write := func(root, more string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+bindings+root+more)
	}
	machine := vm(l, console, "", "running = false", on("root", theDisk, ""))
	write(disk("root", right), machine)
	cli.Must("apply", "-auto-approve")
	imported := func() {
		t.Helper()
		cli.Must("state", "rm", theDisk)
		cli.Must("import", "-no-color", theDisk, "host-a/ssd/root")
	}
	imported()
	stored := virsh(t, l, "dumpxml", "web", "--inactive")
	for name, c := range map[string]struct {
		root string
		want []string
	}{
		"no master":      {disk("root", blank), []string{"Another master than it has", "an overlay of iqn.", "in domain web on host host-a", "a disk without a master"}},
		"another master": {disk("root", over("copy-on-write", "virtclaim_volume_binding.other")), []string{"Another master than it has", "in domain web", "an overlay of iqn."}},
		"another pool":   {strings.Replace(disk("root", right), `"fast"`, `"slow"`, 1), []string{"Another pool", "is the pool rust", "host-a/ssd/root is in pool ssd"}},
		"a smaller size": {disk("root", right+"\n  size = \"1Mi\""), []string{"A disk can't shrink"}},
		"another format": {disk("root", `format = "raw"`+"\n  size = \"64Mi\""), []string{"Another format", "is qcow2: domain web"}},
	} {
		write(c.root, machine)
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message(c.want...).MatchString(out) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if now := virsh(t, l, "dumpxml", "web", "--inactive"); now != stored {
		t.Errorf("the machine was changed:\n%s", now)
	}
	write(disk("root", right), machine)
	if out := cli.Must("apply", "-auto-approve", "-no-color"); strings.Contains(out, "Nothing tells") {
		t.Errorf("its machine tells:\n%s", out)
	}
	if out := cli.Must("plan", "-no-color"); !strings.Contains(out, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", out)
	}
	write(disk("root", right), "")
	cli.Must("apply", "-auto-approve")
	imported()
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !message("Nothing tells what disk host-a/ssd/root is made over", "an overlay of iqn.").MatchString(out) {
		t.Errorf("nobody says that nothing tells:\n%s", out)
	}
	cli.Must("destroy", "-auto-approve")
}
