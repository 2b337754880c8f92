//go:build acc

package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A header that libvirt can't follow, which a guest wrote to its raw disk, blocks neither other disks, nor its own machine and destroy.
func TestAccDisk_GuestWrittenHeadStopsNothing(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	write := func(running, more string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", "format = \"raw\"\n size = \"1Mi\"")+
			vm(l, acctest.NewConsole(t), "", "force_stop = true\n timeouts = { delete = \"10s\", update = \"1m\" }\n running = "+running, on("root", theDisk, ""))+more)
	}
	write("false", disk("other", blank))
	cli.Must("apply", "-auto-approve", "-no-color")
	writeHead(t, l, "root", "-u", "-F", "qcow2", "-b", "/"+strings.Repeat("x", 300))
	acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: Disk host-a/ssd/root could not be read", "No changes.")
	write("true", "")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 1 destroyed")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// libvirt mistakes a file with the header of a Parallels image for a folder. The disk is raw all the same, and grows; libvirt can't delete it,
// and the error has the remedy.
func TestAccDisk_GuestWrittenParallelsHead(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	config := func(size, more string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", fmt.Sprintf("format = \"raw\"\n size = %q", size))+more)
	}
	parallels := func() {
		t.Helper()
		write(t, l, "root", []string{"-f", "parallels"})
		acctest.Contains(t, virsh(t, l, "vol-dumpxml", "root", "ssd"), "type='ploop'")
	}
	defer func() { // libvirt can't
		_ = os.Remove(file(l, "root"))
		virsh(t, l, "pool-refresh", "ssd")
	}()
	config("20Mi", disk("other", blank))
	cli.Must("apply", "-auto-approve", "-no-color")
	parallels()
	config("24Mi", disk("other", blank))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	writeHead(t, l, "root", "-u", "-F", "qcow2", "-b", file(l, "other"))
	config("24Mi", "")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 0 changed, 1 destroyed")
	parallels()
	if out, err := cli.Run("destroy", "-auto-approve", "-no-color"); err == nil || !message("Delete the file on the host", "virsh pool-refresh ssd").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := os.Remove(file(l, "root")); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "pool-refresh", "ssd")
	cli.Must("destroy", "-auto-approve", "-no-color", "-refresh=false") // with a refresh its ledger entry would stay: the volume might come back
}

// A header that a guest wrote to its raw disk has no effect: the disk is imported as raw, another disk that the header names can be
// deleted, and a shared image is deleted with the last disk over it.
func TestAccDisk_GuestWrittenHeadDecidesNothing(t *testing.T) {
	l := acctest.Lab(t)
	_, image := pushed(t, l, "disks/heads", qcow2Image(t))
	raw := "format = \"raw\"\n size = \"32Mi\""
	machine := vm(l, acctest.NewConsole(t), "", "running = false", on("root", theDisk, ""))
	cli := acctest.NewCLI(t)
	write := func(more string) { cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", raw)+machine+more) }
	apply := func(want string) {
		t.Helper()
		if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, want) {
			t.Errorf("want %s:\n%s", want, out)
		}
	}
	write(disk("other", blank) + disk("pulled", containerImage(image.Reference)))
	apply("4 added")
	bases, _ := inPool(t, l)
	if len(bases) != 1 {
		t.Fatalf("the pool has the shared images %v", bases)
	}

	// It grows, and the host records its length.
	raw = strings.Replace(raw, "32Mi", "64Mi", 1)
	write(disk("other", blank) + disk("pulled", containerImage(image.Reference)))
	apply("0 added, 2 changed")

	// A disk that the header names is deleted, also while no machine has the raw one: the host has a record that it is raw.
	writeHead(t, l, "root", "-u", "-F", "qcow2", "-b", file(l, "other"))
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", raw)+disk("pulled", containerImage(image.Reference)))
	apply("2 destroyed")
	write(disk("pulled", containerImage(image.Reference)))
	apply("1 added")

	// So is a shared image.
	writeHead(t, l, "root", "-u", "-F", "qcow2", "-b", file(l, bases[0]))
	write("")
	apply("1 destroyed")
	if bases, others := inPool(t, l); len(bases) > 0 || !slices.Equal(others, []string{"root"}) {
		t.Errorf("the pool has %v and %v", bases, others)
	}

	// The machine opens it as raw, so it is imported as raw, even if it looks like qcow2, and may be qcow2.
	for _, head := range [][]string{{"-o", "data_file=" + filepath.Join(t.TempDir(), "secret")}, {}} {
		writeHead(t, l, "root", head...)
		cli.Must("state", "rm", theDisk)
		cli.Must("import", "-no-color", theDisk, "host-a/ssd/root")
		apply("0 added")
		if state := cli.Must("state", "show", "-no-color", theDisk); !strings.Contains(state, "format     = \"raw\"") {
			t.Errorf("it was imported as\n%s", state)
		}
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A disk without a master, whose header names a backing file now, is neither attached to a machine nor grown; if its domain is started
// outside of Terraform, that file is not opened.
func TestAccDisk_HeadNamesWhatItWasNotMadeOver(t *testing.T) {
	l := acctest.Lab(t)
	secret := filepath.Join(t.TempDir(), "secret")
	acctest.Must(exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "raw", secret, "1M").CombinedOutput())(t)
	cli := acctest.NewCLI(t)
	write := func(running, size string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", "size = \""+size+"\"")+
			vm(l, acctest.NewConsole(t), "", "force_stop = true\n running = "+running, on("root", theDisk, "")))
	}
	write("false", "1Mi")
	cli.Must("apply", "-auto-approve", "-no-color")
	rebase := func(onto ...string) {
		t.Helper()
		args := append([]string{"rebase", "-u", "-f", "qcow2"}, append(onto, file(l, "root"))...)
		acctest.Must(exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput())(t)
	}
	rebase("-F", "raw", "-b", secret)
	acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: Disk host-a/ssd/root names a backing file that it was not given", "No changes.")
	for running, size := range map[string]string{"true": "1Mi", "false": "2Mi"} {
		write(running, size)
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("as its backing file, but the disk was created or imported without one").MatchString(out) {
			t.Errorf("running = %s, size = %s: %v\n%s", running, size, err, out)
		}
	}
	// A disk whose header names a data file is not grown either: QEMU would write to that file.
	rebase("-b", "")
	setDataFile(t, file(l, "root"), 4)
	write("false", "2Mi")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: Disk host-a/ssd/root names a data file that it was not given")
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("its header references an external data file").MatchString(out) {
		t.Errorf("%v\n%s", err, out)
	}
	setDataFile(t, file(l, "root"), 0)
	rebase("-F", "raw", "-b", secret)

	virsh(t, l, "start", "web", "--paused")
	if live := virsh(t, l, "dumpxml", "web"); strings.Contains(live, secret) {
		t.Errorf("QEMU has what the head names:\n%s", live)
	}
	virsh(t, l, "destroy", "web")
	rebase("-b", "")
	write("true", "2Mi")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// setDataFile writes the last byte of the incompatible features of a qcow2 image, in which bit 4 says that its data are in another file.
func setDataFile(t *testing.T, image string, features byte) {
	t.Helper()
	f, err := os.OpenFile(image, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{features}, 79)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The author of a volume's header is unknown if no machine has the volume: one that names other files is never opened, and the
// configuration may declare it raw.
func TestAccDisk_ImportOfHostileHead(t *testing.T) {
	l := acctest.Lab(t)
	virsh(t, l, "vol-create-as", "ssd", "root", "64M", "--format", "raw")
	writeHead(t, l, "root", "-o", "data_file="+filepath.Join(t.TempDir(), "secret"))
	cli := acctest.NewCLI(t)
	write := func(format string) {
		cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", format+"\n size = \"64Mi\""))
	}
	for _, c := range []struct{ format, want string }{
		{"", "The format of the imported disk is not known"},
		{`format = "qcow2"`, "The imported disk is raw"},
	} {
		write(c.format)
		if c.format == "" {
			cli.Must("import", "-no-color", theDisk, "host-a/ssd/root")
		}
		if out, err := cli.Run("plan", "-no-color"); err == nil || !message(c.want, "that keeps its data in another file").MatchString(out) {
			t.Errorf("%q: %v\n%s", c.format, err, out)
		}
	}
	write(`format = "raw"`)
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
		t.Errorf("it was not adopted:\n%s", out)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	// From then on it is recorded on the host. Without a record, a volume that looks like qcow2, and may be that, can be declared raw, too.
	writeHead(t, l, "root")
	known := 0
	for line := range strings.Lines(virsh(t, l, "secret-list")) {
		if strings.Contains(line, "virtclaim ssd/root") {
			id := strings.Fields(line)[0]
			acctest.Contains(t, virsh(t, l, "secret-dumpxml", id), "which is raw and has 67108864 bytes")
			virsh(t, l, "secret-undefine", id)
			known++
		}
	}
	if known != 1 {
		t.Errorf("the ledger has %d entries of it", known)
	}
	cli.Must("state", "rm", theDisk)
	cli.Must("import", "-no-color", theDisk, "host-a/ssd/root")
	_, image := pushed(t, l, "disks/pinned", qcow2Image(t))
	cli.Write("pulled.tf", disk("pulled", containerImage(image.Reference)))
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !message("The imported disk is opened as raw", "1 added, 1 changed, 0 destroyed").MatchString(out) {
		t.Errorf("it was not adopted:\n%s", out)
	}
	// A shared image is kept for it, and is deleted with it.
	bases, _ := inPool(t, l)
	writeHead(t, l, "root", "-u", "-F", "qcow2", "-b", file(l, bases[0]))
	cli.Write("pulled.tf", "")
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
	nothingIn(t, l, "ssd")
}
