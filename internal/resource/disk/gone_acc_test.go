//go:build acc

package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A master whose file is gone, as when its filesystem is not mounted, is not recreated blank below its overlays. A clone needs no master.
func TestAccDisk_MasterGone(t *testing.T) {
	l := acctest.Lab(t)
	config := acctest.Provider(l, "disks") + disk("golden", blank) + disk("clone", over("clone", "virtclaim_disk.golden"))
	overlay := disk("over", over("copy-on-write", "virtclaim_disk.golden"))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config+overlay)
	cli.Must("apply", "-auto-approve", "-no-color")
	clone := acctest.Must(os.Stat(file(l, "clone")))(t)
	elsewhere := filepath.Join(filepath.Dir(filepath.Dir(file(l, "golden"))), "elsewhere")
	if err := os.Rename(file(l, "golden"), elsewhere); err != nil {
		t.Fatal(err)
	}
	out := cli.Must("apply", "-auto-approve", "-no-color")
	if !message("these are overlays of it: ssd/over").MatchString(out) || !strings.Contains(out, "No changes.") {
		t.Errorf("the master is created again:\n%s", out)
	}
	if out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace=virtclaim_disk.golden"); err == nil || !message("its file is not there", "ssd/over").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := os.Rename(elsewhere, file(l, "golden")); err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	if err := os.Remove(file(l, "golden")); err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 added, 1 changed, 0 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	if now := acctest.Must(os.Stat(file(l, "clone")))(t); !os.SameFile(clone, now) {
		t.Error("the clone was created again")
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// moveSSD moves the storage pool ssd to another folder, which is created if it is missing.
func moveSSD(t *testing.T, l *lab.Lab, to string) {
	t.Helper()
	virsh(t, l, "pool-destroy", "ssd")
	virsh(t, l, "pool-undefine", "ssd")
	virsh(t, l, "pool-define-as", "ssd", "dir", "--target", to)
	virsh(t, l, "pool-build", "ssd")
	virsh(t, l, "pool-start", "ssd")
}

// A storage pool whose filesystem is not mounted is on another one: its disks are neither recreated blank nor removed from the state, even
// if other volumes were created there. A deleted disk is recreated.
func TestAccDisk_FilesystemNotMounted(t *testing.T) {
	l := acctest.Lab(t)
	removeTiny := tiny(t, l, room)
	folder := filepath.Dir(file(l, "root"))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", blank)+disk("raw", "format = \"raw\"\n  size = \"4Mi\""))
	cli.Must("apply", "-auto-approve", "-no-color")
	moved := true
	back := func() {
		if moved {
			moved = false
			moveSSD(t, l, folder)
		}
	}
	defer back()
	moveSSD(t, l, filepath.Join(filepath.Dir(folder), "tiny", "empty"))
	virsh(t, l, "vol-create-as", "ssd", "theirs", "64K", "--allocation", "0")
	out := cli.Must("apply", "-auto-approve", "-no-color")
	if !message("The filesystem of disk host-a/ssd/root may not be mounted", "1048576 bytes", "state rm").MatchString(out) || !strings.Contains(out, "No changes.") {
		t.Errorf("the disks are created again:\n%s", out)
	}
	if out := cli.Must("destroy", "-auto-approve", "-no-color"); !message("Disk host-a/ssd/root is removed from the state only", "1048576 bytes", "imported").MatchString(out) {
		t.Errorf("it says nothing of the file:\n%s", out)
	}
	back()
	removeTiny()
	for _, name := range []string{"root", "raw"} {
		cli.Must("import", "virtclaim_disk."+name, "host-a/ssd/"+name)
	}
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 0 changed, 0 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	for _, name := range []string{"root", "raw"} {
		if err := os.Remove(file(l, name)); err != nil {
			t.Fatal(err)
		}
	}
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "2 added")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A plan deletes nothing, not even the shared image of a disk whose file is temporarily elsewhere, and whose deletion failed before.
func TestAccDisk_SharedImageOfMovedDisk(t *testing.T) {
	l := acctest.Lab(t)
	_, image := pushed(t, l, "disks/moved", qcow2Image(t))
	cli, tap := acctest.Tapped(t, l, "disks")
	cli.Write("disk.tf", disk("root", containerImage(image.Reference)))
	cli.Must("apply", "-auto-approve", "-no-color")
	elsewhere := filepath.Join(filepath.Dir(filepath.Dir(file(l, "root"))), "elsewhere")
	for name, deletion := range map[string]lab.Fault{"none": {}, "refused": {Refuse: true}, "killed": {Kill: true}} {
		if name != "none" {
			deletion.Call, deletion.Nth = lab.CallVolumeDelete, 1
			tap.Arm(deletion)
			if out, err := cli.Run("destroy", "-auto-approve", "-no-color"); err == nil || !tap.Fired() {
				t.Fatalf("%s: %v:\n%s", name, err, out)
			}
		}
		if name == "killed" {
			acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
		}
		if err := os.Rename(file(l, "root"), elsewhere); err != nil {
			t.Fatal(err)
		}
		acctest.Contains(t, cli.Must("plan", "-no-color"), "1 to add")
		if bases, _ := inPool(t, l); len(bases) != 1 {
			t.Errorf("%s: the pool has the shared images %v", name, bases)
		}
		if err := os.Rename(elsewhere, file(l, "root")); err != nil {
			t.Fatal(err)
		}
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
	if bases, others := inPool(t, l); len(bases)+len(others) != 0 {
		t.Errorf("the pool has %v and %v", bases, others)
	}
}

// A shared image is kept while the definition of a foreign domain has it in a chain, or a volume in a pool is an overlay of it.
func TestAccDisk_SharedImageOfOthers(t *testing.T) {
	l := acctest.Lab(t)
	_, image := pushed(t, l, "disks/others", qcow2Image(t))
	for name, left := range map[string]func(base string) (remove func()){
		"domain that is off": func(base string) (remove func()) {
			if err := l.Hosts["host-a"].DefineXML(t.Context(), fmt.Sprintf(`<domain type="qemu"><name>theirs</name><memory>32768</memory><os><type>hvm</type></os><devices>
				<disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file="/nowhere/theirs"/><backingStore type="file"><format type="qcow2"/>
				<source file=%q/><backingStore/></backingStore><target dev="vda"/></disk></devices></domain>`, base)); err != nil {
				t.Fatal(err)
			}
			return func() { virsh(t, l, "undefine", "theirs") }
		},
		"overlay in a pool": func(string) (remove func()) {
			acctest.Must(exec.CommandContext(t.Context(), "cp", file(l, "root"), file(l, "top")).CombinedOutput())(t)
			virsh(t, l, "pool-refresh", "ssd")
			return func() { virsh(t, l, "vol-delete", "top", "--pool", "ssd") }
		},
	} {
		cli := acctest.NewCLI(t)
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", containerImage(image.Reference)))
		cli.Must("apply", "-auto-approve", "-no-color")
		bases, _ := inPool(t, l)
		remove := left(file(l, bases[0]))
		cli.Must("destroy", "-auto-approve", "-no-color")
		if bases, _ := inPool(t, l); len(bases) != 1 {
			t.Errorf("%s: the pool has the shared images %v", name, bases)
		}
		remove()
		cli.Must("apply", "-auto-approve", "-no-color")
		cli.Must("destroy", "-auto-approve", "-no-color")
		if bases, others := inPool(t, l); len(bases)+len(others) != 0 {
			t.Errorf("%s: the pool has %v and %v", name, bases, others)
		}
	}
}

// A disk does not grow through a domain that has another file open than the disk's, nor over what a pod has put in place of a claim's file.
func TestAccDisk_GrowsAsWhatItIs(t *testing.T) {
	l := acctest.Lab(t)
	host := l.Hosts["host-a"]
	dir := t.TempDir()
	image, secret := filepath.Join(dir, "disk.img"), filepath.Join(dir, "secret")
	if err := errors.Join(os.WriteFile(image, make([]byte, 1<<20), 0o644), os.WriteFile(secret, make([]byte, 1<<20), 0o600)); err != nil {
		t.Fatal(err)
	}
	size := "8Mi"
	cli := acctest.NewCLI(t)
	write := func(more string) {
		sized := func(how string) string { return how + "\n size = \"" + size + "\"" }
		cli.Write("main.tf", acctest.Provider(l, "disks")+goldenFile(image)+disk("qcow2", sized("format = \"qcow2\""))+disk("raw", sized("format = \"raw\""))+disk("over", sized(over("copy-on-write", "virtclaim_volume_binding.data")))+more)
	}
	machine := strings.NewReplacer("virtclaim_disk.golden", "virtclaim_disk.raw", "running = false", "running = true\n  force_stop = true\n  timeouts = { delete = \"10s\", update = \"1m\" }").Replace(writer)
	write(machine)
	cli.Must("apply", "-auto-approve", "-no-color")
	if err := errors.Join(os.Remove(image), os.Symlink(secret, image)); err != nil {
		t.Fatal(err)
	}
	endRescue := acctest.Rescue(t, host, "raw", file(l, "qcow2"))
	acctest.Must(exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("cp %[1]s %[2]s && mv %[2]s %[1]s", file(l, "raw"), filepath.Join(dir, "copy"))).CombinedOutput())(t)
	size = "16Mi"
	write(machine)
	for target, want := range map[string]string{
		"qcow2": "domain rescue has it open as raw, and it is qcow2", "raw": "domain writer writes to a file that had the name", "over": "symbolic link",
	} {
		if out, err := cli.Run("apply", "-auto-approve", "-no-color", "-target=virtclaim_disk."+target); err == nil || !message(want).MatchString(out) {
			t.Errorf("%s: %v:\n%s", target, err, out)
		}
	}
	endRescue()
	acctest.Must(host.Virsh(t.Context(), "destroy", "writer"))(t)
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A claim that is bound write-exclusive is a master as well while a disk is an overlay of it.
func TestAccDisk_OverlayOfExclusiveFile(t *testing.T) {
	l := acctest.Lab(t)
	image := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	config := acctest.Provider(l, "disks") + fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["host-a"]
  source = { file = { path = %q } }
}
`, image)
	overlay := disk("over", over("copy-on-write", "virtclaim_volume_binding.data"))
	machine := strings.NewReplacer("virtclaim_disk.golden", "virtclaim_volume_binding.data", "running = false", "running = true\n  force_stop = true\n  timeouts = { delete = \"10s\", update = \"1m\" }").Replace(writer)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config+overlay)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", config+overlay+machine)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("it is a master, and so read-only").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Write("main.tf", config+machine)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// No overlay is created of a file that is bound read-shared while a foreign domain writes to it.
func TestAccDisk_OverlayOfWrittenFile(t *testing.T) {
	l := acctest.Lab(t)
	dir := t.TempDir()
	image := filepath.Join(dir, "disk.img")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+goldenFile(image)+disk("over", over("copy-on-write", "virtclaim_volume_binding.data")))
	cli.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_volume_binding.data")
	endRescue := acctest.Rescue(t, l.Hosts["host-a"], "raw", image)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("domain rescue on host host-a runs and writes to the master").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	endRescue()
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
