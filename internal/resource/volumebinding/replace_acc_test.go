//go:build acc

package volumebinding_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const createFirst = "lifecycle { create_before_destroy = true }"

// booted fails the test when a guest was restarted.
func booted(t *testing.T, console acctest.Console) {
	t.Helper()
	if boots := console.Boots(); boots != 1 {
		t.Errorf("the machine booted %d times", boots)
	}
}

// unit is the name of a logical unit in a volume.
func unit(lun lab.LUN) string { return fmt.Sprintf("%s/%d", lun.IQN, lun.Number) }

// plugged fails the test unless the machine web has that unit as its only disk, in its live and its persistent definition.
func plugged(t *testing.T, l *lab.Lab, lun lab.LUN) {
	t.Helper()
	for _, args := range [][]string{{"domblklist", "web"}, {"domblklist", "web", "--inactive"}} {
		out, err := l.Hosts["host-a"].Virsh(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(out, lun.IQN) != 1 || !strings.Contains(out, unit(lun)+"\n") {
			t.Errorf("%v: the machine has not %s alone:\n%s", args, unit(lun), out)
		}
	}
}

// Another claim is another binding under the same id. The new one is created before the old one is destroyed, and the running machine
// changes from one to the other.
func TestAccVolumeBinding_CreateBeforeDestroyOtherClaim(t *testing.T) {
	l := acctest.Lab(t)
	first, second := acctest.LUN(t, l, true, "first"), acctest.LUN(t, l, true, "second")
	acctest.Claim(t, l, "replaced", "first", first)
	acctest.Claim(t, l, "replaced", "second", second)
	console := acctest.NewConsole(t)
	cli := configured(t, l, "replaced", binding(fromClaim("replaced", "first"), createFirst, "host-a")+web(l, console))
	cli.Must("apply", "-auto-approve")
	console.Await(t, "READY")
	cli.Replace("main.tf", `claim_name = "first"`, `claim_name = "second"`)
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "replaced", "first")
	heldBy(t, l, "replaced", "second", "replaced/data write-exclusive")
	if err := secretsOn(l, map[string]int{"host-a": 1})(nil); err != nil {
		t.Error(err)
	}
	plugged(t, l, second)
	booted(t, console)
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "replaced", "second")
}

// A binding that replaces one of the same claim joins its reservation, and the machine is not affected.
func TestAccVolumeBinding_CreateBeforeDestroySameClaim(t *testing.T) {
	for name, chap := range map[string]bool{"with credentials": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, chap, "")
			acctest.Claim(t, l, "replaced", "data", lun)
			console := acctest.NewConsole(t)
			cli := configured(t, l, "replaced", binding(fromClaim("replaced", "data"), createFirst, "host-a")+web(l, console))
			cli.Must("apply", "-auto-approve")
			console.Await(t, "READY")
			cli.Must("apply", "-auto-approve", "-replace="+data)
			heldBy(t, l, "replaced", "data", "replaced/data write-exclusive")
			if err := secretsOn(l, map[string]int{"host-a": map[bool]int{true: 1, false: 0}[chap]})(nil); err != nil {
				t.Error(err)
			}
			plugged(t, l, lun)
			booted(t, console)
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "replaced", "data")
		})
	}
}

// Growth of direct storage is not reported by any API: a binding that replaces the old one measures it, while the machine runs.
func TestAccVolumeBinding_ReplacementMeasuresGrowth(t *testing.T) {
	l := acctest.Lab(t)
	image := acctest.ImageIn(t, t.TempDir(), "data.raw")
	console := acctest.NewConsole(t)
	cli := configured(t, l, "grown", binding(fmt.Sprintf("file = { path = %q }", image), createFirst, "host-a")+web(l, console)+`
output "capacity" { value = virtclaim_volume_binding.data.volume.capacity }
`)
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), fmt.Sprintf("capacity = %d", acctest.StorageSize))
	console.Await(t, "READY")
	if err := os.Truncate(image, 2*acctest.StorageSize); err != nil {
		t.Fatal(err)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	says(t, cli.Must("apply", "-auto-approve", "-no-color", "-replace="+data), fmt.Sprintf("capacity = %d", 2*acctest.StorageSize))
	booted(t, console)
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve")
}

// A failed replacement leaves the machine the secret, which both bindings have under the same id.
func TestAccVolumeBinding_FailedReplacementKeepsSecret(t *testing.T) {
	for _, f := range []lab.Fault{
		{Call: lab.CallSecretDefine, Nth: 1, After: true}, // defined, and without the new value
		{Call: lab.CallSecretDefine, Nth: 2},              // with the new value
	} {
		t.Run(f.String(), func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "replaced", "data", acctest.LUN(t, l, true, ""))
			console := acctest.NewConsole(t)
			cli, tap := tapped(t, l, "replaced", binding(fromClaim("replaced", "data"), createFirst, "host-a")+web(l, console))
			cli.Must("apply", "-auto-approve")
			tap.Arm(f)
			out, err := cli.Run("apply", "-auto-approve", "-no-color", "-replace="+data)
			if !tap.Fired() || err == nil {
				t.Fatalf("the replacement was not interrupted: %v\n%s", err, out)
			}
			heldBy(t, l, "replaced", "data", "replaced/data write-exclusive")
			for _, args := range [][]string{{"destroy", "web"}, {"start", "web"}} {
				if out, err := l.Hosts["host-a"].Virsh(t.Context(), args...); err != nil {
					t.Errorf("the machine has lost its secret: %v: %s", err, out)
				}
			}
			says(t, cli.Must("plan", "-no-color"), "virtclaim_volume_binding.data will be updated in-place", "0 to add, 1 to change, 0 to destroy")
			cli.Must("apply", "-auto-approve")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "replaced", "data")
		})
	}
}

// Another name is another binding: the claim can't be held by both.
func TestAccVolumeBinding_Renamed(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "replaced", "data", acctest.LUN(t, l, true, ""))
	cli := configured(t, l, "replaced", binding(fromClaim("replaced", "data"), "", "host-a"))
	cli.Must("apply", "-auto-approve")
	cli.Replace("main.tf", `name   = "data"`, `name   = "renamed"`)
	cli.Must("apply", "-auto-approve")
	heldBy(t, l, "replaced", "data", "replaced/renamed write-exclusive")

	cli.Replace("main.tf", `name   = "renamed"`, `name   = "again"
  `+createFirst)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("two bindings have a claim for themselves")
	}
	says(t, out, "The volume could not be bound", `it is held by binding "renamed" of owner "replaced"`)
	heldBy(t, l, "replaced", "data", "replaced/renamed write-exclusive")
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "replaced", "data")
}

// Two bindings of one name have the same id, and would overwrite each other's credentials.
func TestAccVolumeBinding_SameNameTwice(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "replaced", "first", acctest.LUN(t, l, true, ""))
	acctest.Claim(t, l, "replaced", "second", acctest.LUN(t, l, true, ""))
	both := strings.Replace(binding(fromClaim("replaced", "each.key"), `for_each = toset(["first", "second"])`, "host-a"), `"each.key"`, "each.key", 1)
	cli := configured(t, l, "replaced", both)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("both were made")
	}
	says(t, out, "Error: Two bindings of one name", "Give each its own name")
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "replaced", "first")
	heldBy(t, l, "replaced", "second")
}

// golden is a read-shared binding, and an overlay of it on host-a that the machine web has as a second disk.
func golden(config, namespace string) string {
	return strings.Replace(config, "disks      = {", "disks      = { root = { volume = virtclaim_disk.root.volume }, ", 1) + fmt.Sprintf(`
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { %s }
}

resource "virtclaim_disk" "root" {
  host       = "host-a"
  name       = "web-root"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.golden.volume }
}
`, fromClaim(namespace, "golden"))
}

// A binding that is destroyed unplugs its disk, or the overlay of it, from the running machine. The same apply recreates the binding and
// plugs both in again.
func TestAccVolumeBinding_ReplacementIsPluggedInAgain(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	acctest.Claim(t, l, "replaced", "data", lun)
	acctest.Claim(t, l, "replaced", "golden", acctest.LUN(t, l, false, ""))
	console := acctest.NewConsole(t)
	cli := configured(t, l, "replaced", golden(binding(fromClaim("replaced", "data"), "", "host-a")+web(l, console), "replaced"))
	cli.Must("apply", "-auto-approve")
	console.Await(t, "READY")
	for _, how := range []func() string{
		func() string {
			return cli.Must("apply", "-auto-approve", "-no-color", "-replace="+data, "-replace=virtclaim_volume_binding.golden")
		},
		func() string {
			cli.Must("taint", data)
			return cli.Must("apply", "-auto-approve", "-no-color")
		},
	} {
		out := how()
		for _, args := range [][]string{{"domblklist", "web"}, {"domblklist", "web", "--inactive"}} {
			disks, err := l.Hosts["host-a"].Virsh(t.Context(), args...)
			if err != nil || !strings.Contains(disks, unit(lun)) || !strings.Contains(disks, "web-root") {
				t.Errorf("%v: the machine has lost a disk: %v\n%s\n%s", args, err, out, disks)
			}
		}
		says(t, cli.Must("plan", "-no-color"), "No changes.")
	}
	booted(t, console)
	cli.Must("destroy", "-auto-approve")
}
