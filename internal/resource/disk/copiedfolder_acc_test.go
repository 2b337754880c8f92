//go:build acc

package disk_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The copy of a folder without its state adopts no disk that a machine of the first has, and so deletes none. After the loss of a state
// disks are imported.
func TestAccDisk_CopiedFolder(t *testing.T) {
	l := acctest.Lab(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("plain", "format = \"raw\"\n size = \"1Mi\"") +
		vm(l, acctest.NewConsole(t), "", "running = false", on("root", theDisk, ""), on("plain", "virtclaim_disk.plain", ""))
	first, second := acctest.NewCLI(t), acctest.NewCLI(t)
	first.Write("main.tf", config)
	second.Write("main.tf", config)
	first.Must("apply", "-auto-approve", "-no-color")
	out, err := second.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("The disk could not be made", "ssd is used by the domain web", "terraform import").MatchString(out) ||
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

// A disk that no machine has yet is adopted by the copy of a folder, after which it is another disk: the first folder neither uses nor deletes
// it any more.
func TestAccDisk_CopiedFolderBeforeMachine(t *testing.T) {
	l := acctest.Lab(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("plain", "format = \"raw\"\n size = \"1Mi\"")
	machine := vm(l, acctest.NewConsole(t), "", "running = false", on("root", theDisk, ""), on("plain", "virtclaim_disk.plain", ""))
	first, second := acctest.NewCLI(t), acctest.NewCLI(t)
	first.Write("main.tf", config)
	second.Write("main.tf", config)
	first.Must("apply", "-auto-approve", "-no-color")
	second.Must("apply", "-auto-approve", "-no-color")
	first.Write("main.tf", config+machine)
	if out, err := first.Run("apply", "-auto-approve", "-no-color", "-refresh=false"); err == nil ||
		!message("another volume has its name now").MatchString(out) {
		t.Errorf("the first folder's machine got the disks: %v\n%s", err, out)
	}
	first.Must("destroy", "-auto-approve", "-no-color", "-refresh=false")
	if plan := second.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the second folder's plan is not empty any more:\n%s", plan)
	}
	second.Write("main.tf", config+machine)
	second.Must("apply", "-auto-approve", "-no-color")
	second.Must("destroy", "-auto-approve", "-no-color")
	nothingIn(t, l, "ssd")
}
