//go:build acc

package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// While the storage does not answer, a clone reports its progress, and can be canceled: then nothing is left.
func TestAccDisk_CloneReportsAndIsCanceled(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "disks", "golden", fullLUN(t, l))
	cli, tap := acctest.Tapped(t, l, "disks")
	cli = cli.With("TF_LOG_PROVIDER=INFO")
	source := binding("golden", "read-shared", "host-a")
	cli.Write("main.tf", source)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", source+disk("root", over("clone", "virtclaim_volume_binding.golden")))

	tap.Arm(lab.Fault{Call: lab.CallBlockPull, Nth: 1, Slow: true}) // it is interrupted in the middle
	cmd, output := cli.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the copy has begun", func() error {
		info, err := os.Stat(file(l, "root"))
		if err == nil && info.Size() < 1<<20 {
			err = os.ErrNotExist
		}
		return err
	})
	if err := l.Target.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "the copy is reported", func() error {
		if !strings.Contains(output(), "Filling the disk") || !strings.Contains(output(), "bytes_per_second") {
			return os.ErrNotExist
		}
		return nil
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			t.Errorf("it succeeded:\n%s", output())
		}
	case <-time.After(lab.Patience(20 * time.Second)):
		t.Errorf("it did not end:\n%s", output())
	}
	if err := l.Target.Thaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := gone(file(l, "root"))(nil); err != nil {
		t.Error(err)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "Plan: 1 to add") {
		t.Errorf("the next plan does not recreate it:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A claim that a pod may write to is not cloned, whatever the access mode of its binding.
func TestAccDisk_CloneWhilePodWrites(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "disks", "golden", acctest.LUN(t, l, false, ""))
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "disks")+binding("golden", "read-shared", "host-a")+
		disk("root", over("clone", "virtclaim_volume_binding.golden")))
	remove := acctest.AddPod(t, l, "disks", "golden", "writer", false, corev1.PodRunning)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	remove()
	if words := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "); err == nil ||
		!strings.Contains(words, "pods that may write to it mount the PersistentVolumeClaim disks/golden") || !strings.Contains(words, "pod writer (Running)") {
		t.Errorf("it was cloned beside a pod that writes: %v\n%s", err, out)
	}
	if err := gone(file(l, "root"))(nil); err != nil {
		t.Error(err)
	}
	defer acctest.AddPod(t, l, "disks", "golden", "reader", true, corev1.PodRunning)()
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// When a master becomes unreadable, libvirt ends a copy without an error: the partial copy is not accepted as a clone.
func TestAccDisk_PartialCopyIsNoClone(t *testing.T) {
	l := acctest.Lab(t)
	lun := fullLUN(t, l)
	acctest.Claim(t, l, "disks", "golden", lun)
	cli, tap := acctest.Tapped(t, l, "disks")
	source := binding("golden", "read-shared", "host-a")
	cli.Write("main.tf", source)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", source+disk("root", over("clone", "virtclaim_volume_binding.golden")))
	cmd, output := startHeldCopy(t, cli, tap)
	if err := os.Truncate(lun.Path, lun.Size/2); err != nil {
		t.Fatal(err)
	}
	tap.Release()
	if err := cmd.Wait(); err == nil || !message("the copy broke off").MatchString(output()) {
		t.Errorf("got %v:\n%s", err, output())
	}
	if err := gone(file(l, "root"))(nil); err != nil {
		t.Error(err)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Writers of a master are checked again after the copy: a machine may have been started outside of Terraform.
func TestAccDisk_CloneOfWrittenMaster(t *testing.T) {
	l := acctest.Lab(t)
	lun := fullLUN(t, l)
	acctest.Claim(t, l, "disks", "golden", lun)
	host, port, _ := strings.Cut(l.Target.Portal, ":")
	xml := fmt.Sprintf(`<domain type='qemu'><name>theirs</name><memory unit='MiB'>64</memory><os><type arch='x86_64'>hvm</type></os>
<devices><disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='iscsi' name='%s/%d'><host name='%s' port='%s'/>
</source><target dev='vda' bus='virtio'/></disk></devices></domain>`, lun.IQN, lun.Number, host, port)
	if err := l.Hosts["host-a"].DefineXML(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	cli, tap := acctest.Tapped(t, l, "disks")
	source := binding("golden", "write-exclusive", "host-a")
	cli.Write("main.tf", source)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", source+disk("root", over("clone", "virtclaim_volume_binding.golden")))
	cmd, output := startHeldCopy(t, cli, tap)
	virsh(t, l, "start", "theirs", "--paused")
	tap.Release()
	if err := cmd.Wait(); err == nil || !message("domain theirs on host host-a runs and writes to the master").MatchString(output()) {
		t.Errorf("got %v:\n%s", err, output())
	}
	if err := gone(file(l, "root"))(nil); err != nil {
		t.Error(err)
	}
	virsh(t, l, "destroy", "theirs")
	cli.Must("apply", "-auto-approve", "-no-color")
	virsh(t, l, "undefine", "theirs")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// fullLUN has data everywhere.
func fullLUN(t *testing.T, l *lab.Lab) lab.LUN {
	t.Helper()
	return acctest.LUN(t, l, false, strings.Repeat("content.", 8<<20))
}

// startHeldCopy starts an apply, and waits until it is about to copy, after all checks. It goes on when the tap releases it.
func startHeldCopy(t *testing.T, cli acctest.CLI, tap *lab.Tap) (cmd *exec.Cmd, output func() string) {
	t.Helper()
	tap.Arm(lab.Fault{Call: lab.CallBlockPull, Nth: 1, Hold: true})
	cmd, output = cli.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the copy is to begin", func() error {
		if !tap.Fired() {
			return errors.New(output())
		}
		return nil
	})
	return cmd, output
}

// BenchmarkClone measures a clone of 1 GiB, half of it empty, against qemu-img convert of the same master in the same run: compare the
// ns/op of both. sparse is the allocated part of the clone.
func BenchmarkClone(b *testing.B) {
	l := acctest.Lab(b)
	lun, err := l.Target.AddLUN(b.Context(), lab.LUNSpec{Size: 1 << 30, Content: []byte(strings.Repeat("content.", 64<<20))})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("virtclaim", func(b *testing.B) { benchmarkClone(b, l, lun) })
	b.Run("qemu-img", func(b *testing.B) { benchmarkConvert(b, l, lun) })
	if err := l.Target.RemoveLUN(context.Background(), lun); err != nil {
		b.Error(err)
	}
}

func benchmarkConvert(b *testing.B, l *lab.Lab, lun lab.LUN) {
	b.Helper()
	to := b.TempDir() + "/clone"
	for b.Loop() {
		out, err := exec.CommandContext(b.Context(), "qemu-img", "convert", "-O", "qcow2", l.Target.URL(lun), to).CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	reportAllocated(b, to)
}

func reportAllocated(b *testing.B, path string) {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "du", "--block-size=1M", path).Output()
	if err != nil {
		b.Fatal(err)
	}
	var mib float64
	for _, digit := range strings.Fields(string(out))[0] {
		mib = mib*10 + float64(digit-'0')
	}
	b.ReportMetric(mib, "MiB-allocated")
}

func benchmarkClone(b *testing.B, l *lab.Lab, lun lab.LUN) {
	b.Helper()
	f := host.NewRegistry(map[string]host.Config{"host-a": {URI: l.Hosts["host-a"].URI}})
	defer f.Close()
	h, err := f.Host("host-a")
	if err != nil {
		b.Fatal(err)
	}
	maker := &content.Creator{Owner: "benchmark"}
	portal, err := source.ParsePortal(l.Target.Portal)
	if err != nil {
		b.Fatal(err)
	}
	master := source.ISCSIVolume(portal, lun.IQN, int64(lun.Number), "", &lun.Size)
	master.Images[0].AccessMode = volume.ReadShared
	spec := content.Spec{Pool: "ssd", Name: "clone", Mode: volume.Clone, Format: "qcow2", Master: master, Capacity: lun.Size}
	for b.Loop() {
		made, err := maker.Make(b.Context(), "host-a", h, spec, func(host.Progress) {})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		reportAllocated(b, made.Path)
		if err := maker.Remove(b.Context(), "host-a", h, "ssd", "clone", made.Generation); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
