//go:build acc

package virtualmachine_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// twoDisks are masters that an overlay may have.
var twoDisks = externalDisk("lower", `size = "1Mi"`) + externalDisk("beside", `size = "1Mi"`)

// rebased is a machine with an overlay that is pulled or rebased outside of Terraform.
type rebased struct {
	*testing.T
	cli          acctest.CLI
	virsh        func(args ...string) string
	overlay, top string
	write        func(title, overlay string)
}

// rebasedMachine applies a rebased, whose guest does nothing. lower is the volume of its master, which is configured in more.
func rebasedMachine(t *testing.T, lower, more string) rebased {
	t.Helper()
	l := acctest.Lab(t)
	host := l.Hosts["host-a"]
	r := rebased{T: t, cli: acctest.NewCLI(t), top: filepath.Join(host.Dir, "pools", "ssd", "root")}
	r.virsh = func(args ...string) string {
		t.Helper()
		return acctest.Must(host.Virsh(t.Context(), args...))(t)
	}
	r.overlay = externalDisk("root", "copy_mode = \"copy-on-write\"\n  source = { volume = "+lower+".volume }")
	r.write = func(title, overlay string) {
		r.cli.Write("main.tf", acctest.Provider(l, "rebased")+more+overlay+machine{
			disks: []string{"root = { volume = virtclaim_disk.root.volume }"}, log: "/dev/null",
			more: "force_stop = true\n  title = \"" + title + "\"",
		}.hcl(l))
	}
	r.write("a", r.overlay)
	r.cli.Must("apply", "-auto-approve")
	r.virsh("suspend", "web")
	return r
}

// refused fails the test unless an update, or a start, is refused for those reasons before anything has changed, and a plan warns of it.
func (r rebased) refused(parts ...string) {
	r.Helper()
	r.write("b", r.overlay)
	if out := r.cli.Must("plan", "-no-color"); !message(append([]string{"Warning: Disk host-a/ssd/root is no overlay of its master any more"}, parts...)...).MatchString(out) {
		r.Errorf("the plan does not warn:\n%s", out)
	}
	before := r.virsh("dumpxml", "web", "--inactive") + r.virsh("domstate", "web")
	out, err := r.cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message(append([]string{"Error: The machine could not be updated"}, parts...)...).MatchString(out) {
		r.Errorf("the update was not refused: %v\n%s", err, out)
	}
	if after := r.virsh("dumpxml", "web", "--inactive") + r.virsh("domstate", "web"); after != before {
		r.Errorf("the domain was changed:\n%s", after)
	}
}

// adopted fails the test unless the remedy in the error leads to a machine that has the image without its master.
func (r rebased) adopted(size string) {
	r.Helper()
	r.cli.Must("state", "rm", "virtclaim_disk.root")
	r.write("b", externalDisk("root", size+"\n  format = \"qcow2\""))
	r.cli.Must("import", "-no-color", "virtclaim_disk.root", "host-a/ssd/root")
	if out := r.cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
		r.Errorf("the image was not just adopted:\n%s", out)
	}
	if xml := r.virsh("dumpxml", "web", "--inactive"); strings.Contains(xml, filepath.Join(filepath.Dir(r.top), "lower")) || strings.Contains(xml, "<image name=\"iqn") || strings.Contains(xml, `protocol='iscsi'`) {
		r.Errorf("the master is still below it:\n%s", xml)
	}
	if out := r.cli.Must("plan", "-no-color"); !strings.Contains(out, "No changes.") || strings.Contains(out, "Warning: Disk") {
		r.Errorf("the second plan is not empty:\n%s", out)
	}
}

func (r rebased) rebase(args ...string) {
	r.Helper()
	if out, err := exec.CommandContext(r.Context(), "qemu-img", append(append([]string{"rebase"}, args...), r.top)...).CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
}

// After the pull of an overlay from its master all of the guest's data is in the one image, and the master may change. The image is never
// defined as an overlay of the master again while the guest uses it.
func TestAccVirtualMachine_PulledOverlay(t *testing.T) {
	r := rebasedMachine(t, "virtclaim_disk.lower", twoDisks)
	r.virsh("blockpull", "web", "vda", "--wait")
	id := r.virsh("domid", "web")
	r.refused("no overlay of", "lower", "terraform state rm")
	if out := r.cli.Must("plan", "-no-color"); !message("Warning: Disk root of machine web", "no overlay of", "lower", "terraform state rm", "can't be updated.").MatchString(out) {
		t.Errorf("the machine does not warn:\n%s", out)
	}
	r.adopted(`size = "1Mi"`)
	if after := r.virsh("domid", "web"); after != id {
		t.Error("the machine was restarted")
	}
	r.cli.Must("destroy", "-auto-approve")
}

// For a machine that is off only the image's header shows that it was rebased.
func TestAccVirtualMachine_RebasedOverlay(t *testing.T) {
	r := rebasedMachine(t, "virtclaim_disk.lower", twoDisks)
	r.virsh("destroy", "web")
	beside := filepath.Join(filepath.Dir(r.top), "beside")
	format := "raw"
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "info", beside).CombinedOutput(); err != nil {
		t.Fatal(err)
	} else if strings.Contains(string(out), "file format: qcow2") {
		format = "qcow2"
	}
	r.rebase("-u", "-F", format, "-b", beside)
	r.refused("no overlay of", "lower", "its head names", "beside")
	r.rebase("-b", "")
	r.refused("no overlay of", "lower", "its head names nothing", "terraform state rm")
	r.adopted(`size = "1Mi"`)
	r.cli.Must("destroy", "-auto-approve")
}

// A pulled or rebased disk can be destroyed as it is, because nothing of it is elsewhere. Nothing is created over it as it is configured.
func TestAccVirtualMachine_RebasedOverlayIsDestroyed(t *testing.T) {
	r := rebasedMachine(t, "virtclaim_disk.lower", twoDisks)
	r.virsh("blockpull", "web", "vda", "--wait")
	r.write("a", r.overlay+externalDisk("copy", "copy_mode = \"clone\"\n  source = { volume = virtclaim_disk.root.volume }"))
	for what, args := range map[string][]string{
		"The disk could not be made":       {"-target=virtclaim_disk.copy"},
		"The machine could not be defined": {"-target=virtclaim_virtual_machine.web", "-replace=virtclaim_virtual_machine.web"},
	} {
		out, err := r.cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
		if err == nil || !message("Error: "+what, "no overlay of", "terraform state rm").MatchString(out) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	r.cli.Must("destroy", "-auto-approve")
}

// The header of an overlay never names network storage: only the domain's chain shows that it was pulled, so that the domain is kept until
// the image is adopted.
func TestAccVirtualMachine_PulledOverlayOfNetworkStorage(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "rebased", "golden", acctest.LUN(t, l, false, "golden"))
	r := rebasedMachine(t, "virtclaim_volume_binding.golden", claimBinding("rebased", "golden", "read-shared", "host-a"))
	r.virsh("blockpull", "web", "vda", "--wait")
	for _, running := range []bool{true, false} {
		if !running {
			r.virsh("destroy", "web")
		}
		if out := r.cli.Must("plan", "-no-color"); !message("no overlay of", "terraform state rm", "can't be updated or destroyed").MatchString(out) {
			t.Errorf("running %v: the plan does not warn:\n%s", running, out)
		}
		r.write("b", r.overlay)
		for _, args := range [][]string{{"apply"}, {"destroy"}} {
			before := r.virsh("dumpxml", "web", "--inactive")
			out, err := r.cli.Run(append(args, "-auto-approve", "-no-color", "-refresh=false")...)
			if err == nil || !message("nothing was changed", "no overlay of", "terraform state rm").MatchString(out) {
				t.Errorf("running %v: %s was not refused: %v\n%s", running, args, err, out)
			}
			if after := r.virsh("dumpxml", "web", "--inactive"); after != before {
				t.Errorf("running %v: the domain was changed:\n%s", running, after)
			}
		}
	}
	size := r.virsh("vol-dumpxml", "root", "--pool", "ssd")
	size, _, _ = strings.Cut(size[strings.Index(size, "<capacity unit='bytes'>")+len("<capacity unit='bytes'>"):], "<")
	r.adopted("size = \"" + size + "\"")
	r.cli.Must("destroy", "-auto-approve")
}
