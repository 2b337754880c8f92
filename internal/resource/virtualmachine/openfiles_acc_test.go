//go:build acc

package virtualmachine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// openFiles is a running machine on host-a whose disks are files of the pool ssd, with the operations on it.
type openFiles struct {
	*testing.T
	cli     acctest.CLI
	virsh   func(args ...string) string
	folder  string
	console acctest.Console
	write   func(more string)
}

const (
	onVirtio = `data = { volume = virtclaim_disk.data.volume }`
	onSCSI   = `more = { volume = virtclaim_disk.more.volume, bus = "scsi" }`
	onSATA   = `held = { volume = virtclaim_disk.held.volume, bus = "sata" }`
)

func newOpenFiles(t *testing.T, resources string, disks ...string) *openFiles {
	t.Helper()
	l := acctest.Lab(t)
	host, console, cli := l.Hosts["host-a"], acctest.NewConsole(t), acctest.NewCLI(t)
	o := &openFiles{
		T: t, cli: cli, folder: filepath.Join(host.Dir, "pools", "ssd"), console: console,
		virsh: func(args ...string) string {
			t.Helper()
			return acctest.Must(host.Virsh(context.WithoutCancel(t.Context()), args...))(t)
		},
		write: func(more string) {
			cli.Write("main.tf", acctest.Provider(l, "open")+resources+machine{
				disks: disks, log: console.Path(), cmdline: "virtclaim.write=vda:" + written, more: "force_stop = true\n" + more,
			}.hcl(l))
		},
	}
	o.write("")
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	return o
}

// warned plans and expects a warning with those parts.
func (o *openFiles) warned(parts ...string) {
	o.Helper()
	if out := o.cli.Must("plan", "-no-color"); !message(parts...).MatchString(out) {
		o.Errorf("the plan does not say %q:\n%s", parts, out)
	}
}

// refused applies and expects an error with those parts, and an unchanged domain.
func (o *openFiles) refused(args []string, parts ...string) {
	o.Helper()
	before := o.virsh("dumpxml", "web") + o.virsh("dumpxml", "web", "--inactive")
	out, err := o.cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
	if err == nil || !message(parts...).MatchString(out) {
		o.Errorf("it was not refused for %q: %v\n%s", parts, err, out)
	}
	if after := o.virsh("dumpxml", "web") + o.virsh("dumpxml", "web", "--inactive"); after != before {
		o.Fatalf("the domain was changed:\n%s", after)
	}
}

// restarts shuts the machine down with an apply, calls meanwhile, and starts it with another apply.
func (o *openFiles) restarts(meanwhile func()) {
	o.Helper()
	o.write("running = false")
	o.cli.Must("apply", "-auto-approve", "-no-color")
	meanwhile()
	o.write("")
	o.cli.Must("apply", "-auto-approve", "-no-color")
	if out := o.cli.Must("plan", "-no-color"); !strings.Contains(out, "No changes.") || strings.Contains(out, "Warning: Machine") {
		o.Errorf("after the restart:\n%s", out)
	}
}

// movePool moves the pool ssd to another folder.
func (o *openFiles) movePool(folder string) {
	o.Helper()
	o.virsh("pool-destroy", "ssd")
	o.virsh("pool-undefine", "ssd")
	o.virsh("pool-define-as", "ssd", "dir", "--target", folder)
	o.virsh("pool-autostart", "ssd")
	o.virsh("pool-start", "ssd")
}

func (o *openFiles) copyFiles(to string) {
	o.Helper()
	if out, err := exec.CommandContext(o.Context(), "cp", "-a", o.folder+"/.", to).CombinedOutput(); err != nil {
		o.Fatalf("%v: %s", err, out)
	}
}

// otherFolder is an empty folder for the pool, which is reset to its own in the end.
func (o *openFiles) otherFolder() string {
	o.Helper()
	folder := o.folder + "-moved"
	if err := os.MkdirAll(folder, 0o755); err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() {
		o.movePool(o.folder)
		for _, path := range []string{folder, filepath.Join(o.folder, "data"), filepath.Join(o.folder, "more"), filepath.Join(o.folder, "held")} {
			if err := os.RemoveAll(path); err != nil {
				o.Error(err)
			}
		}
		o.virsh("pool-refresh", "ssd")
	})
	return folder
}

func openDisks() string {
	const size = `size = "1Mi"`
	return externalDisk("data", size) + externalDisk("more", size+"\n  format = \"raw\"") + externalDisk("held", size)
}

// A pool is moved by copying while the machine runs: the copies have the identities of the files, but lack later writes. The guest keeps
// its files, even if it may be restarted, and gets the copies after it was shut down.
func TestAccVirtualMachine_MovedFilesAreNotSwappedIn(t *testing.T) {
	o := newOpenFiles(t, openDisks(), onVirtio, onSCSI, onSATA)
	moved := o.otherFolder()
	o.copyFiles(moved)
	o.movePool(moved)
	for _, more := range []string{"", "allow_restart = true"} {
		o.write(more)
		o.warned("disk data", filepath.Join(o.folder, "data")+" open", "names "+filepath.Join(moved, "data"), "copy", "Shut the machine down")
		o.refused(nil, "machine could not be updated", filepath.Join(o.folder, "data")+" open", "names "+filepath.Join(moved, "data"))
	}
	o.restarts(func() { o.copyFiles(moved) })
	if text := o.virsh("dumpxml", "web"); strings.Contains(text, o.folder+"/") || strings.Count(text, moved+"/") != 6 { // three are in the metadata
		t.Errorf("it was not started with the copies:\n%s", text)
	}
	o.cli.Must("destroy", "-auto-approve", "-no-color")
}

// A pool gets an empty folder while the machine runs: its files still exist, and are not exchanged for blank ones.
func TestAccVirtualMachine_EmptyPoolTakesNoDisk(t *testing.T) {
	o := newOpenFiles(t, openDisks(), onVirtio, onSCSI)
	o.movePool(o.otherFolder())
	out := o.cli.Must("plan", "-no-color")
	if !message("Domain web runs with", filepath.Join(o.folder, "data"), "storage pool ssd has another folder now").MatchString(out) || strings.Contains(out, "deleted disk") {
		t.Errorf("the plan says otherwise:\n%s", out)
	}
	for range 2 {
		o.refused(nil, "machine could not be updated", filepath.Join(o.folder, "data"))
	}
	o.restarts(func() {})
	o.cli.Must("destroy", "-auto-approve", "-no-color")
}

// The files of a running machine's disks are deleted outside of Terraform. An apply leaves them to the guest, until they are saved with the
// command in the error, or given up.
func TestAccVirtualMachine_DeletedFilesStayWithTheirGuest(t *testing.T) {
	o := newOpenFiles(t, externalDisk("data", `size = "1Mi"`+"\n  format = \"raw\"")+externalDisk("more", `size = "1Mi"`), onVirtio, onSCSI)
	o.console.Await(t, "WROTE vda ")
	remove := func(names ...string) {
		for _, name := range names {
			if err := os.Remove(filepath.Join(o.folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove("data", "more")
	rescue := "virsh blockcopy web vda <new file> --transient-job --wait --finish"
	o.warned("Domain web runs with the deleted disk host-a/ssd/data", rescue)
	for range 2 {
		o.warned("Machine web has a file of disk data open that is gone", rescue, "refused", "running = false")
		o.refused(nil, "machine could not be updated", "disk data", rescue, "disk more")
	}
	o.refused([]string{"-replace=virtclaim_disk.data"}, "could not be removed", rescue)
	saved := filepath.Join(t.TempDir(), "saved")
	command := strings.Fields(strings.Replace(rescue, "<new file>", saved, 1))
	o.virsh(command[1:]...)
	if got := acctest.StoredAt(t, saved, 4096, len(written)); got != written {
		t.Errorf("saved was %q", got)
	}
	o.write("running = false")
	o.warned("Machine web has a file of disk data open that is gone", "This apply discards")
	o.restarts(func() {})

	o.console.AwaitN(t, "READY", 2)
	remove("data", "more")
	o.write("allow_restart = true")
	o.warned("Machine web has a file of disk data open that is gone", "This apply discards")
	o.cli.Must("apply", "-auto-approve", "-no-color")
	if out := o.cli.Must("plan", "-no-color"); !strings.Contains(out, "No changes.") || strings.Contains(out, "Warning: Machine") {
		t.Errorf("after the consent:\n%s", out)
	}
	remove("more") // the ledger keeps the identity of a raw disk
	data := filepath.Join(o.folder, "data")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", "cp "+data+" "+data+".new && mv "+data+".new "+data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o.refused([]string{"-replace=virtclaim_virtual_machine.web", "-target=virtclaim_virtual_machine.web", "-refresh=false"}, "could not be removed", "disk data", rescue)
	o.virsh("destroy", "web")
	o.cli.Must("destroy", "-auto-approve", "-no-color")
}
