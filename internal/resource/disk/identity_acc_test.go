//go:build acc

package disk_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A restored or abandoned state has the names of volumes that were created by other configurations since. It neither adopts nor deletes
// them.
func TestAccDisk_RestoredStateLeavesOthersVolumes(t *testing.T) {
	l := acctest.Lab(t)
	disks := disk("root", blank) + disk("plain", "format = \"raw\"\n size = \"1Mi\"")
	ours, theirs := acctest.NewCLI(t), acctest.NewCLI(t)
	ours.Write("main.tf", acctest.Provider(l, "ours")+disks)
	theirs.Write("main.tf", acctest.Provider(l, "theirs")+disks)
	ours.Must("apply", "-auto-approve", "-no-color")
	ours.Must("plan", "-no-color") // its journals are gone
	yesterday := read(t, filepath.Join(ours.Dir, "terraform.tfstate"))
	ours.Must("destroy", "-auto-approve", "-no-color")
	theirs.Must("apply", "-auto-approve", "-no-color")
	theirs.Must("plan", "-no-color")
	for _, more := range []string{"-refresh=true", "-refresh=false"} {
		ours.Write("terraform.tfstate", yesterday)
		if plan := ours.Must("plan", "-no-color"); !strings.Contains(plan, "Plan: 2 to add") || !message("another volume has its name now").MatchString(plan) {
			t.Errorf("the restored state believes in its disks:\n%s", plan)
		}
		ours.Must("destroy", "-auto-approve", "-no-color", more)
		if plan := theirs.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
			t.Errorf("the others' disks are not as they were after a destroy with %s:\n%s", more, plan)
		}
	}
	theirs.Must("destroy", "-auto-approve", "-no-color")
}

// The identity of a volume survives all operations that leave it the same volume. A volume that lost it is left alone.
func TestAccDisk_IdentityLasts(t *testing.T) {
	l := acctest.Lab(t)
	h := l.Hosts["host-a"]
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("plain", "format = \"raw\"\n size = \"1Mi\"")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	identities := func() string {
		return strings.Join(regexp.MustCompile(`"instance_id": "[^"]*"`).FindAllString(read(t, filepath.Join(cli.Dir, "terraform.tfstate")), -1), " ")
	}
	made := identities()
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"a pool is refreshed", func() { virsh(t, l, "pool-refresh", "ssd") }},
		{"libvirtd is restarted", func() {
			if err := h.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := h.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		{"the files are moved", func() {
			for _, name := range []string{"root", "plain"} {
				moved := file(l, name) + ".moved"
				if err := os.Rename(file(l, name), moved); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(moved, file(l, name)); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"they are imported", func() {
			cli.Must("state", "rm", "virtclaim_disk.root", "virtclaim_disk.plain")
			cli.Must("import", "-no-color", "virtclaim_disk.root", "host-a/ssd/root")
			cli.Must("import", "-no-color", "virtclaim_disk.plain", "host-a/ssd/plain")
			cli.Must("apply", "-auto-approve", "-no-color")
		}},
	} {
		c.do()
		if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || identities() != made {
			t.Fatalf("after %s: %s instead of %s\n%s", c.what, identities(), made, plan)
		}
	}
	// A tool that recreates the file removes the identity. Then the volume is unrecognized, and not deleted.
	path := file(l, "root")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
	virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "qcow2")
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "can't be recognized") {
		t.Errorf("nothing is said of a disk that lost its identity:\n%s", plan)
	}
	out, err := cli.Run("destroy", "-auto-approve", "-no-color")
	note := regexp.MustCompile(`echo .* \| virsh secret-define /dev/stdin`).FindString(out)
	if err == nil || note == "" {
		t.Fatalf("destroyed: %v\n%s", err, out)
	}
	// The user runs the command that records its identity.
	acctest.MustShell(t, l, strings.Replace(note, "virsh", "virsh -c '"+l.Hosts["host-a"].URI+"'", 1))
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "1 added, 0 changed, 0 destroyed") { // the other one was destroyed
		t.Errorf("it is not just recognized:\n%s", out)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "can't be recognized") {
		t.Errorf("it is not recognized:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The file of a running machine's disk is deleted outside of Terraform, and recreated by an apply: QEMU still has the deleted one. Each
// plan warns of that until the machine is restarted.
func TestAccDisk_DeletedFileOfARunningMachine(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := func(more string) string {
		return acctest.Provider(l, "disks") + disk("root", blank) + seed("one", `user_data = "#cloud-config\n"`) +
			vm(l, console, "", more, on("root", theDisk, ", bus = \"sata\""), on("one", "virtclaim_disk.one", `, device = "cdrom"`))
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config(""))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	for _, name := range []string{"root", "one"} {
		if err := os.Remove(file(l, name)); err != nil {
			t.Fatal(err)
		}
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "Domain web runs with the deleted disk host-a/ssd/root") {
		t.Errorf("nothing is said of the deleted file:\n%s", plan)
	} else if !message("virsh blockcopy web sda <new file> --transient-job --wait --finish").MatchString(plan) {
		t.Errorf("the command is another one:\n%s", plan)
	} else if !message("reads the deleted file as its disk one and does not write to it").MatchString(plan) || message("blockcopy web hda").MatchString(plan) {
		t.Errorf("the guest can't write to the seed:\n%s", plan)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	for range 2 {
		if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || !message("has a file of disk root open that is gone").MatchString(plan) {
			t.Errorf("nothing is said of what the guest goes on with:\n%s", plan)
		}
	}
	cli.Write("main.tf", config("allow_restart = true"))
	if plan := cli.Must("plan", "-no-color"); !message("This apply discards what the guest has written").MatchString(plan) {
		t.Errorf("nothing is said of what the restart discards:\n%s", plan)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	console.AwaitN(t, "READY", 2)
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "Warning: Machine") {
		t.Errorf("the machine was restarted, and still:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
