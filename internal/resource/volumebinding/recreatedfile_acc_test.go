//go:build acc

package volumebinding_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// deaf is a machine on host-a without an operating system that has the binding's volume. Suspend or destroy its domain before an apply that
// stops it: its firmware ignores its power button.
const deaf = `
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  force_stop = true
  disks      = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`

// destroySuspended destroys what runs such a machine, which is suspended first: it is not waited for then.
func destroySuspended(t *testing.T, l *lab.Lab, cli acctest.CLI) {
	t.Helper()
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "suspend", "web"))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// inFolder is a volume that is a folder of the node, with a disk.img.
func inFolder(t *testing.T) *corev1.PersistentVolumeSource {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "disk.img"), 1<<20)
	return &corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}
}

// writeFile replaces the file of that path by a raw image.
func writeFile(t *testing.T, file string, size int64) {
	t.Helper()
	_ = os.Remove(file)
	if err := errors.Join(os.WriteFile(file, []byte("data"), 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
}

// A claim that was recreated over the same path is not adopted while a guest may have the former file open. After that the file is checked
// like that of a new binding.
func TestAccVolumeBinding_FileOfRemadeClaim(t *testing.T) {
	for name, write := range map[string]func(string) string{"reserved": strings.Clone, "unreserved": unreserved} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
			file := filepath.Join(spec.Source.HostPath.Path, "disk.img")
			acctest.AddClaim(t, l, spec)
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", write(acctest.Provider(l, "remade")+binding(fromClaim("remade", "file"), "", "host-a")+deaf))
			cli.Must("apply", "-auto-approve", "-no-color")
			remake(t, l, spec, lab.LUN{})
			writeFile(t, file, 1<<20)
			refused := func(why string) {
				for range 2 {
					if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), why) {
						t.Errorf("%v:\n%s", err, out)
					}
				}
			}
			refused("the claim was made again while domain web, which runs")
			acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
			writeFile(t, file, 0)
			qcow2At(t, file)
			refused("is a qcow2 image, and is to be opened as raw")
			writeFile(t, file, 2<<20)
			cli.Must("apply", "-auto-approve", "-no-color")
			says(t, cli.Must("state", "show", "-no-color", "virtclaim_volume_binding.data"), "capacity", "= 2097152")
			if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "another one") {
				t.Errorf("it is not the binding of the claim that was made again:\n%s", plan)
			}
			destroySuspended(t, l, cli)
		})
	}
}

// A claim that was recreated for the same PersistentVolume, as continuous delivery does, leads to its guest's file, unless the file is
// known to be another one.
func TestAccVolumeBinding_RemadeClaimOfSameVolume(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	acctest.AddClaim(t, l, spec)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "remade")+binding(fromClaim("remade", "file"), "", "host-a")+deaf)
	cli.Must("apply", "-auto-approve", "-no-color")
	for range 2 {
		remakeClaim(t, l, spec)
		cli.Must("apply", "-auto-approve", "-no-color")
		if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || strings.Contains(plan, "another one") {
			t.Errorf("it is not the binding of the claim that was made again:\n%s", plan)
		}
	}
	refused := func(why string, args ...string) {
		t.Helper()
		out, err := cli.Run(append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
		if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), why) {
			t.Errorf("%v:\n%s", err, out)
		}
	}
	// Another file of the same size, as from a backup, is not the one that the guest has open.
	writeFile(t, filepath.Join(spec.Source.HostPath.Path, "disk.img"), 1<<20)
	refused("domain web on host host-a writes to a file that had the name", "-replace=virtclaim_volume_binding.data")
	remakeClaim(t, l, spec)
	refused("domain web on host host-a writes to a file that had the name")
	writeFile(t, filepath.Join(spec.Source.HostPath.Path, "disk.img"), 2<<20)
	refused("the claim was made again while domain web, which runs")
	refused(wouldLose, "-destroy")
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// remakeClaim deletes a claim in spite of its finalizers, and recreates it for the same PersistentVolume.
func remakeClaim(t *testing.T, l *lab.Lab, spec lab.ClaimSpec) {
	t.Helper()
	vanish(t, l, spec)
	core := l.Cluster.Client.CoreV1()
	free := []byte(`{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
	if _, err := core.PersistentVolumes().Patch(t.Context(), spec.VolumeName(), types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.PersistentVolumeClaims(spec.Namespace).Create(t.Context(), l.Claim(spec), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitBound(t.Context(), spec.Namespace, spec.Name); err != nil {
		t.Fatal(err)
	}
}

// A claim that was recreated over another file does not detach the former one from a guest that may have it open.
func TestAccVolumeBinding_OtherFileOfRemadeClaim(t *testing.T) {
	for name, more := range map[string]string{"replaced": "", "replaced by one that is made first": createFirst} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
			acctest.AddClaim(t, l, spec)
			former := spec.Source.HostPath.Path
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", unreserved(acctest.Provider(l, "remade")+binding(fromClaim("remade", "file"), more, "host-a")+deaf))
			cli.Must("apply", "-auto-approve", "-no-color")
			spec.Source = inFolder(t)
			remake(t, l, spec, lab.LUN{})
			for range 2 {
				if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil ||
					!strings.Contains(strings.Join(strings.Fields(out), " "), "Error: The binding could not be updated") ||
					!strings.Contains(strings.Join(strings.Fields(out), " "), "the claim was made again while domain web, which runs") {
					t.Errorf("%v:\n%s", err, out)
				}
			}
			if xml := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "web"))(t); !strings.Contains(xml, former) {
				t.Errorf("the file was taken from the guest:\n%s", xml)
			}
			acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
			says(t, cli.Must("apply", "-auto-approve", "-no-color"), "The claim was made again over other storage")
			if xml := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "web"))(t); !strings.Contains(xml, spec.Source.HostPath.Path) {
				t.Errorf("the machine has not got the new file:\n%s", xml)
			}
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			destroySuspended(t, l, cli)
		})
	}
}

// Neither does the removal of a binding detach the file of a recreated claim from a guest.
func TestAccVolumeBinding_RemovedWithRemadeClaim(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	acctest.AddClaim(t, l, spec)
	config := acctest.Provider(l, "remade") + binding(fromClaim("remade", "file"), "", "host-a") + deaf
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	remake(t, l, spec, lab.LUN{})
	without := strings.Replace(deaf, "data = { volume = virtclaim_volume_binding.data.volume }", "", 1)
	cli.Write("main.tf", acctest.Provider(l, "remade")+without)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "the claim was made again while domain web, which runs") {
		t.Errorf("%v:\n%s", err, out)
	}
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
	cli.Must("apply", "-auto-approve", "-no-color")
	destroySuspended(t, l, cli)
}

// Overlays of the claim's former file are worthless over another one, also those of machines that are off.
func TestAccVolumeBinding_OverlaysOfRemadeClaim(t *testing.T) {
	l := acctest.Lab(t)
	spec := lab.ClaimSpec{Namespace: "remade", Name: "file", Size: 1 << 20, Filesystem: true, Source: inFolder(t)}
	acctest.AddClaim(t, l, spec)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", unreserved(acctest.Provider(l, "remade"))+binding(fromClaim("remade", "file"), `access_mode = "read-shared"`, "host-a")+`
resource "virtclaim_disk" "over" {
  host       = "host-a"
  name       = "over"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`+strings.NewReplacer("virtclaim_volume_binding.data", "virtclaim_disk.over", "force_stop", "running = false\n  force_stop").Replace(deaf))
	cli.Must("apply", "-auto-approve", "-no-color")
	remakeClaim(t, l, spec) // also over the same PersistentVolume another file of the same size is possible
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "these are overlays of it:") {
		t.Errorf("%v:\n%s", err, out)
	}
	remake(t, l, spec, lab.LUN{})
	for _, destroyed := range []string{"virtclaim_virtual_machine.web", "virtclaim_disk.over"} {
		out, err := cli.Run("apply", "-auto-approve", "-no-color", "-target=virtclaim_volume_binding.data")
		if said := strings.Join(strings.Fields(out), " "); err == nil || !strings.Contains(said, "these are overlays of it:") ||
			!strings.Contains(said, "/over") || strings.Contains(said, "of domain web") != strings.Contains(destroyed, "web") {
			t.Errorf("before %s goes: %v:\n%s", destroyed, err, out)
		}
		cli.Must("destroy", "-auto-approve", "-no-color", "-target="+destroyed)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	remake(t, l, spec, lab.LUN{})
	cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_volume_binding.data")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
