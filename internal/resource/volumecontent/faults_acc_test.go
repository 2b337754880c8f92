//go:build acc

package volumecontent_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// imageSize is the size of an image in these tests, in bytes.
const imageSize = 3 << 20

// changing are the calls with which a volume is filled that change something.
var changing = []lab.Call{
	lab.CallCreateXML, lab.CallDefine, lab.CallVolumeCreate, lab.CallVolumeUpload, lab.CallSecretDefine, lab.CallAttach, lab.CallBlockCopy,
	lab.CallBlockJobAbort, lab.CallDestroy, lab.CallVolumeDelete, lab.CallSecretUndefine, lab.CallUndefine,
}

// direct is the configuration of a logical unit that is filled with a file.
func direct(l *lab.Lab, lun lab.LUN, file, more string) string {
	return filled(fmt.Sprintf("iscsi = { portal = %q, iqn = %q, lun = %d }", l.Target.Portal, lun.IQN, lun.Number), fmt.Sprintf("file = { path = %q }", file),
		more, "host-a")
}

// claimed is that of a claim.
func claimed(name, file, more string) string {
	return filled(fmt.Sprintf(`persistent_volume_claim = { namespace = "content-faults", claim_name = %q }`, name), fmt.Sprintf("file = { path = %q }", file),
		more, "host-a")
}

// isFilled fails the test unless the logical unit has the file, and zeros after it.
func isFilled(t *testing.T, lun lab.LUN, file string) {
	t.Helper()
	want := make([]byte, lun.Size)
	copy(want, acctest.Must(os.ReadFile(file))(t))
	if !bytes.Equal(acctest.Must(os.ReadFile(lun.Path))(t), want) {
		t.Error("the volume is not what it was filled with")
	}
}

// journals are the domains of virtclaim's on host-a that are no machines.
func journals(t *testing.T, l *lab.Lab) (names []string) {
	t.Helper()
	for name := range strings.FieldsSeq(acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "list", "--all", "--name"))(t)) {
		if strings.HasPrefix(name, "virtclaim-") {
			names = append(names, name)
		}
	}
	return names
}

// points are the faults of all changes of the last apply of the configurations, which are applied once without any.
func points(t *testing.T, ways []lab.Fault, configurations ...string) []lab.Fault {
	t.Helper()
	cli, tap := acctest.Tapped(t, acctest.Lab(t), "faults")
	defer cli.Must("destroy", "-auto-approve", "-no-color")
	before, calls := map[lab.Call]int{}, map[lab.Call]int{}
	for _, configuration := range configurations {
		for _, call := range changing {
			before[call] = tap.Calls(call)
		}
		cli.Write("main.tf", configuration)
		cli.Must("apply", "-auto-approve", "-no-color")
	}
	for _, call := range changing {
		if calls[call] = tap.Calls(call) - before[call]; calls[call] == 0 {
			t.Fatalf("an apply makes no call %s", call)
		}
	}
	return acctest.Points(calls, ways)
}

// After an interruption at any change of a host, the next apply fills all of the volume, and nothing is left.
func TestAccVolumeContent_Interrupted(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, acctest.Known)
	one, two := imageOf(t, "one", imageSize), imageOf(t, "another", imageSize+512)
	first, then := direct(l, lun, one, "overwrite = true"), direct(l, lun, two, "overwrite = true")
	created := points(t, acctest.CutsAndKills, first)
	updated := points(t, []lab.Fault{{After: true, Kill: true}}, first, then) // it is the same code
	for _, change := range []struct {
		name, before, after, file string
		faults                    []lab.Fault
	}{{"create", "", first, one, created}, {"update", first, then, two, updated}} {
		for _, f := range change.faults {
			t.Run(change.name+"/"+f.String(), func(t *testing.T) {
				cli, tap := acctest.Tapped(t, acctest.Lab(t), "faults")
				if change.before != "" {
					cli.Write("main.tf", change.before)
					cli.Must("apply", "-auto-approve", "-no-color")
				}
				defer cli.Must("destroy", "-auto-approve", "-no-color")
				cli.Write("main.tf", change.after)
				_, _ = acctest.Interrupt(t, cli, tap, f) // the apply may survive a cut
				acctest.PutRight(t, cli, func(t *testing.T) { t.Helper(); isFilled(t, lun, change.file) })
				if left := journals(t, l); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			})
		}
	}
}

// What a claim was filled with is recorded on it, so that it needs no overwrite, whenever the apply is interrupted.
func TestAccVolumeContent_InterruptedClaim(t *testing.T) {
	file := imageOf(t, "one", imageSize)
	for _, f := range []lab.Fault{
		{Call: lab.CallBlockCopy, Nth: 3, Kill: true},
		{Call: lab.CallBlockCopy, Nth: 3, After: true, Kill: true},
		{Call: lab.CallBlockJobAbort, Nth: 3, After: true, Kill: true},
		{Call: lab.CallVolumeDelete, Nth: 3, Kill: true},
		{Call: lab.CallUndefine, Nth: 2, Kill: true},
		{Call: lab.CallUndefine, Nth: 2, After: true, Kill: true},
	} {
		t.Run(f.String(), func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, true, "")
			acctest.Claim(t, l, "content-faults", "data", lun)
			cli, tap := acctest.Tapped(t, l, "faults")
			cli.Write("main.tf", claimed("data", file, ""))
			defer cli.Must("destroy", "-auto-approve", "-no-color")
			_, _ = acctest.Interrupt(t, cli, tap, f)
			acctest.PutRight(t, cli, func(t *testing.T) { t.Helper(); isFilled(t, lun, file) })
			if left := journals(t, l); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// An interrupted destroy that erases is put right by the next one.
func TestAccVolumeContent_InterruptedErasing(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	file := imageOf(t, "one", imageSize)
	for _, f := range []lab.Fault{
		{Call: lab.CallBlockCopy, Nth: 1, After: true, Kill: true}, {Call: lab.CallBlockJobAbort, Nth: 1, After: true}, {Call: lab.CallUndefine, Nth: 2, Kill: true},
	} {
		t.Run(f.String(), func(t *testing.T) {
			cli, tap := acctest.Tapped(t, acctest.Lab(t), "faults")
			cli.Write("main.tf", direct(l, lun, file, "overwrite = true\n erase = true"))
			cli.Must("apply", "-auto-approve", "-no-color")
			tap.Arm(f)
			if out, err := cli.Run("destroy", "-auto-approve", "-no-color"); !tap.Fired() {
				t.Errorf("the call was never made: %v\n%s", err, out)
			}
			cli.Must("destroy", "-auto-approve", "-no-color")
			isFilled(t, lun, os.DevNull)
		})
	}
}

// While only a part is written, no machine is started with the volume, and no disk copies it.
func TestAccVolumeContent_HalfFilledIsRefused(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	file := imageOf(t, "one", imageSize)
	cli, tap := acctest.Tapped(t, l, "faults")
	cli.Write("main.tf", direct(l, lun, file, "")+`
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "pc", domain_type = "qemu" }
  force_stop = true
  disks      = { root = { volume = virtclaim_volume_binding.data.volume } }
}

resource "virtclaim_disk" "copy" {
  host       = "host-a"
  name       = "copy"
  usage_type = "fast"
  copy_mode  = "clone"
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`)
	defer cli.Must("destroy", "-auto-approve", "-no-color")
	tap.Arm(lab.Fault{Call: lab.CallBlockCopy, Nth: 3, After: true, Kill: true})
	if out, err := cli.Run("apply", "-auto-approve", "-no-color", "-target=virtclaim_volume_content.data"); err == nil || !tap.Fired() {
		t.Fatalf("it was not interrupted: %v\n%s", err, out)
	}
	left := journals(t, l)
	if len(left) != 1 {
		t.Fatalf("the journals are %v", left)
	}
	for _, user := range []string{"virtclaim_virtual_machine.web", "virtclaim_disk.copy"} {
		out, err := cli.Run("apply", "-auto-approve", "-no-color", "-target="+user)
		if err == nil || !message("apply the configuration of that virtclaim_volume_content again").MatchString(out) || !strings.Contains(out, left[0]) {
			t.Errorf("%s: %v\n%s", user, err, out)
		}
	}
	cli.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_volume_content.data")
	isFilled(t, lun, file)
}

// libvirtd ends while the volume is written: QEMU goes on copying. The next apply detects that, ends it, and writes all of the volume again.
func TestAccVolumeContent_LibvirtdCrash(t *testing.T) {
	for name, killed := range map[string]bool{"the provider lives": false, "the provider is killed, too": true} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			daemon := l.Hosts["host-a"]
			lun := acctest.LUN(t, l, false, "")
			file := imageOf(t, "one", imageSize)
			cli, tap := acctest.Tapped(t, l, "faults")
			cli.Write("main.tf", direct(l, lun, file, ""))
			defer cli.Must("destroy", "-auto-approve", "-no-color")

			tap.Arm(lab.Fault{Call: lab.CallBlockJobAbort, Nth: 3, Hold: true})
			terraform, output := cli.Start("apply", "-auto-approve", "-no-color")
			acctest.Eventually(t, "the volume is being written", func() error {
				if !tap.Fired() {
					return fmt.Errorf("it says %s", output())
				}
				return nil
			})
			if killed { // a libvirtd that sees the connection end would end QEMU
				if err := daemon.Freeze(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := exec.CommandContext(t.Context(), "pkill", "-KILL", "-P", strconv.Itoa(terraform.Process.Pid)).Run(); err != nil {
					t.Error(err)
				}
			}
			if err := daemon.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			tap.Release()
			if err := daemon.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := terraform.Wait(); err == nil {
				t.Errorf("the apply succeeded: %s", output())
			}
			acctest.PutRight(t, cli, func(t *testing.T) { t.Helper(); isFilled(t, lun, file) })
			if left := journals(t, l); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// A volume that a running machine of anybody has, also below an overlay, is refused before the first byte.
func TestAccVolumeContent_InUse(t *testing.T) {
	for name, overlay := range map[string]bool{"its disk": false, "below an overlay": true} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, false, acctest.Known)
			one, two := imageOf(t, "one", imageSize), imageOf(t, "another", imageSize)
			cli, _ := acctest.Tapped(t, l, "faults")
			start, stop := guest(t, l, lun, overlay)
			defer cli.Must("destroy", "-auto-approve", "-no-color")
			refuse := func() {
				t.Helper()
				before := acctest.Must(os.ReadFile(lun.Path))(t)
				start()
				defer stop()
				out, err := cli.Run("apply", "-auto-approve", "-no-color")
				if err == nil || !message("it is in use").MatchString(out) || !message("domain theirs on host host-a runs with it").MatchString(out) || !message("Nothing was written").MatchString(out) {
					t.Errorf("got %v\n%s", err, out)
				}
				if !bytes.Equal(acctest.Must(os.ReadFile(lun.Path))(t), before) {
					t.Error("the volume has changed")
				}
				if left := journals(t, l); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			}
			cli.Write("main.tf", direct(l, lun, one, "overwrite = true"))
			refuse()
			acctest.PutRight(t, cli, func(t *testing.T) { t.Helper(); isFilled(t, lun, one) })
			cli.Write("main.tf", direct(l, lun, two, "overwrite = true"))
			refuse()
			acctest.PutRight(t, cli, func(t *testing.T) { t.Helper(); isFilled(t, lun, two) })
		})
	}
}

// guest is a machine of another owner with the logical unit, or with an overlay of it.
func guest(t *testing.T, l *lab.Lab, lun lab.LUN, overlay bool) (start, stop func()) {
	t.Helper()
	h := l.Hosts["host-a"]
	address, port, _ := strings.Cut(l.Target.Portal, ":")
	unit := fmt.Sprintf(`<source protocol='iscsi' name='%s/%d'><host name='%s' port='%s'/></source>`, lun.IQN, lun.Number, address, port)
	disk := `<disk type='network' device='disk'><driver name='qemu' type='raw'/>` + unit
	if overlay {
		file := filepath.Join(t.TempDir(), "overlay")
		if out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-f", "qcow2", file, strconv.FormatInt(lun.Size, 10)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		disk = `<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='` + file + `'/>` +
			`<backingStore type='network'><format type='raw'/>` + unit + `<backingStore/></backingStore>`
	}
	definition := filepath.Join(t.TempDir(), "theirs.xml")
	text := `<domain type='qemu'><name>theirs</name><memory unit='MiB'>32</memory><os><type>hvm</type></os><devices>` + disk +
		`<target dev='vda' bus='virtio'/></disk></devices></domain>`
	if err := os.WriteFile(definition, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) func() {
		return func() {
			t.Helper()
			if out, err := h.Virsh(context.WithoutCancel(t.Context()), args...); err != nil {
				t.Fatalf("%v: %v: %s", args, err, out)
			}
		}
	}
	return do("create", definition, "--paused"), do("destroy", "theirs")
}
