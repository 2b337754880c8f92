//go:build acc

package disk_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The copy of a folder without its state gets no disk of the first, and so deletes none. After the loss of a state disks are imported.
func TestAccDisk_CopiedFolder(t *testing.T) {
	l := acctest.Lab(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("plain", "format = \"raw\"\n size = \"1Mi\"") +
		vm(l, acctest.NewConsole(t), "", "running = false", on("root", theDisk, ""), on("plain", "virtclaim_disk.plain", ""))
	first, second := acctest.NewCLI(t), acctest.NewCLI(t)
	first.Write("main.tf", config)
	second.Write("main.tf", config)
	first.Must("apply", "-auto-approve", "-no-color")
	out, err := second.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("The disk could not be made", "is in the storage pool ssd already", "terraform import").MatchString(out) ||
		strings.Contains(out, "Creation complete") {
		t.Errorf("the copy of the folder was applied: %v\n%s", err, out)
	}
	second.Must("destroy", "-auto-approve", "-no-color")
	second.Must("import", "-no-color", theDisk, "host-a/ssd/root")
	if plan := first.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the first folder's plan is not empty any more:\n%s", plan)
	}
	first.Must("destroy", "-auto-approve", "-no-color")
	nothingIn(t, l, "ssd")
}

// An apply that is killed when a disk is finished, and before it is in the state, leaves it on the host. The next apply does not take it for its own,
// since it could be that of another state, and prints the command to import it.
func TestAccDisk_KilledWhenFinished(t *testing.T) {
	l := acctest.Lab(t)
	for name, config := range map[string]string{"qcow2": disk("root", blank), "raw": disk("root", "format = \"raw\"\n size = \"1Mi\"")} {
		t.Run(name, func(t *testing.T) {
			cli, tap := acctest.Tapped(t, l, "disks")
			cli.Write("main.tf", config)
			_, _ = acctest.Interrupt(t, cli, tap, lab.Fault{Call: lab.CallUndefine, Nth: 1, After: true, Kill: true})
			out, err := cli.Run("apply", "-auto-approve", "-no-color")
			if err == nil || !message("is in the storage pool ssd already", "terraform import <address of this resource> host-a/ssd/root").MatchString(out) {
				t.Errorf("%v\n%s", err, out)
			}
			cli.Must("import", "-no-color", theDisk, "host-a/ssd/root")
			acctest.PutRight(t, cli, nil)
			cli.Must("destroy", "-auto-approve", "-no-color")
			nothingIn(t, l, "ssd")
		})
	}
}
