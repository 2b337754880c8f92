//go:build acc

package volumebinding_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// refuses applies, and fails the test unless that fails with the error why.
func refuses(t *testing.T, cli acctest.CLI, why string, args ...string) {
	t.Helper()
	out, err := cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
	if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), why) {
		t.Errorf("%v: want %q:\n%s", err, why, out)
	}
}

const (
	exchanged   = "domain web on host host-a writes to a file that had the name"
	wouldLose   = "nothing was changed, because the running guest would lose what it has written"
	soleUnknown = "domain rescue on host host-a writes to"
)

// The file of a claim was replaced while its guest runs, as by a restore: the guest writes to the deleted file, which must not be detached
// from it.
func TestAccVolumeBinding_ExchangedFile(t *testing.T) {
	for name, more := range map[string]string{"replaced": "", "replaced by one that is made first": createFirst} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
			file := filepath.Join(spec.Source.HostPath.Path, "disk.img")
			acctest.AddClaim(t, l, spec)
			config := acctest.Provider(l, "remade") + binding(fromClaim("remade", "file"), more, "host-a") + deaf
			without := strings.NewReplacer("data = { volume = virtclaim_volume_binding.data.volume }", "", "force_stop", "allow_restart = true\n  force_stop").Replace(config)
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", config)
			cli.Must("apply", "-auto-approve", "-no-color")
			writeFile(t, file, 1<<20)
			refuses(t, cli, exchanged, "-replace=virtclaim_volume_binding.data")
			refuses(t, cli, wouldLose, "-replace=virtclaim_virtual_machine.web")
			// Another domain with the new file open proves nothing about this guest.
			endRescue := acctest.Rescue(t, l.Hosts["host-a"], "raw", file)
			refuses(t, cli, soleUnknown, "-replace=virtclaim_volume_binding.data")
			cli.Write("main.tf", without)
			refuses(t, cli, soleUnknown)
			endRescue()
			refuses(t, cli, wouldLose)
			cli.Replace("main.tf", "allow_restart = true", "")
			refuses(t, cli, wouldLose)
			// Opening a FIFO blocks libvirt until another process opens it for writing.
			if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o644)); err != nil {
				t.Fatal(err)
			}
			refuses(t, cli, "there is no regular file")
			writeFile(t, file, 1<<20)
			acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
			cli.Must("apply", "-auto-approve", "-no-color")
			destroySuspended(t, l, cli)
		})
	}
}

// A pod replaces a file by a FIFO once QEMU has opened the file to measure it. libvirtd does not block on the FIFO.
func TestAccVolumeBinding_ExchangedWhileMeasured(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	file := filepath.Join(spec.Source.HostPath.Path, "disk.img")
	fifo := file + ".fifo"
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	acctest.AddClaim(t, l, spec)
	cli, tap := tapped(t, l, "remade", binding(fromClaim("remade", "file"), "", "host-a"))
	tap.Arm(lab.Fault{Call: lab.CallCreateXML, Nth: 1, After: true, Hold: true}) // the domain with which QEMU measures it
	cmd, output := cli.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "QEMU opens the file", func() error {
		if !tap.Fired() || !isOpen(file) {
			return errors.New(output())
		}
		return nil
	})
	if err := os.Rename(fifo, file); err != nil {
		t.Fatal(err)
	}
	tap.Release()
	err := cmd.Wait()
	freed := acctest.Must(os.OpenFile(file, os.O_RDWR, 0))(t) // unblocks a process that waits on the FIFO
	defer func() { _ = freed.Close() }()
	if err != nil { // it was measured before
		t.Errorf("%v:\n%s", err, output())
	}
	refuses(t, cli, "there is no regular file", "-replace=virtclaim_volume_binding.data")
	writeFile(t, file, 1<<20)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// isOpen reports whether any process has a file open.
func isOpen(path string) bool {
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	return slices.ContainsFunc(open, func(fd string) bool {
		is, err := os.Readlink(fd)
		return err == nil && is == path
	})
}

// A second machine does not get a shared file while the first one writes to a deleted file of that name.
func TestAccVolumeBinding_ExchangedSharedFile(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	acctest.AddClaim(t, l, spec)
	config := acctest.Provider(l, "remade") + binding(fromClaim("remade", "file"), `access_mode = "write-shared"`, "host-a") + deaf
	second := strings.NewReplacer(`"web"`, `"second"`).Replace(deaf)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", config+second)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "suspend", "second"))(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	writeFile(t, filepath.Join(spec.Source.HostPath.Path, "disk.img"), 1<<20)
	cli.Write("main.tf", config+second)
	refuses(t, cli, "domain web has "+filepath.Join(spec.Source.HostPath.Path, "disk.img")+", too, and writes to a file that had that name")
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The memory of a saved machine belongs to the claim's former file, which can't be proven to be the present one.
func TestAccVolumeBinding_SavedWithRemadeClaim(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	acctest.AddClaim(t, l, spec)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "remade")+binding(fromClaim("remade", "file"), "", "host-a")+deaf)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "managedsave", "web"))(t)
	remakeClaim(t, l, spec)
	refuses(t, cli, "is saved with its memory, and has", "-target=virtclaim_volume_binding.data")
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "managedsave-remove", "web"))(t)
	cli.Must("apply", "-auto-approve", "-no-color")
	destroySuspended(t, l, cli)
}

// An update that is killed after it has reserved the new claim has not checked the file yet: the next one does.
func TestAccVolumeBinding_InterruptedWithRemadeClaim(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	file := filepath.Join(spec.Source.HostPath.Path, "disk.img")
	acctest.AddClaim(t, l, spec)
	cli, tap := tapped(t, l, "remade", binding(fromClaim("remade", "file"), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	remake(t, l, spec, lab.LUN{})
	writeFile(t, file, 0)
	qcow2At(t, file)
	tap.Arm(lab.Fault{Call: lab.CallCreateXML, Nth: 1, Kill: true})
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); !tap.Fired() || err == nil {
		t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
	}
	refuses(t, cli, "is a qcow2 image, and is to be opened as raw")
	writeFile(t, file, 2<<20)
	cli.Must("apply", "-auto-approve", "-no-color")
	says(t, cli.Must("state", "show", "-no-color", "virtclaim_volume_binding.data"), "capacity", "= 2097152")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Overlays of a unit whose claim was recreated may be worthless, because the unit may have been wiped.
func TestAccVolumeBinding_OverlaysOfUnitOfRemadeClaim(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "data", LUN: acctest.LUN(t, l, true, "")}
	acctest.AddClaim(t, l, spec)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "remade")+binding(fromClaim("remade", "data"), `access_mode = "read-shared"`, "host-a")+`
resource "virtclaim_disk" "over" {
  host       = "host-a"
  name       = "over"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`+strings.NewReplacer("virtclaim_volume_binding.data", "virtclaim_disk.over", "force_stop", "running = false\n  force_stop").Replace(deaf))
	cli.Must("apply", "-auto-approve", "-no-color")
	remake(t, l, spec, spec.LUN)
	refuses(t, cli, "these are overlays of it: disk data of domain web on host host-a")
	cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_volume_binding.data")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A mount or pool that an interrupted apply has left keeps a claim's filesystem busy: it is removed with the binding.
func TestAccVolumeBinding_EndsInspections(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	acctest.AddClaim(t, l, spec)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "remade")+binding(fromClaim("remade", "file"), "", "host-a"))
	cli.Must("apply", "-auto-approve", "-no-color")
	sum := sha256.Sum256([]byte(filepath.Join(spec.Source.HostPath.Path, "disk.img")))
	name := "virtclaim-inspect-" + hex.EncodeToString(sum[:8])
	for _, args := range [][]string{{"pool-define-as", name, "dir", "--target", "/run/libvirt/virtclaim/" + name}, {"pool-build", name}, {"pool-start", name}} {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), args...))(t)
	}
	sum = sha256.Sum256([]byte(spec.Source.HostPath.Path))
	over := "virtclaim-folder-" + hex.EncodeToString(sum[:8])
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "pool-create-as", over, "dir", "--target", spec.Source.HostPath.Path+"/."))(t)
	if out := cli.Must("destroy", "-auto-approve", "-no-color"); strings.Contains(out, "A mount may be left") {
		t.Errorf("it warns:\n%s", out)
	}
	for _, left := range []string{name, over} {
		if out, err := l.Hosts["host-a"].Virsh(t.Context(), "pool-info", left); err == nil {
			t.Errorf("it is left:\n%s", out)
		}
	}
}
