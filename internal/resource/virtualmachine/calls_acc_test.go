//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// counter counts the calls to a host by what is done.
type counter struct {
	cli acctest.CLI
	tap *lab.Tap
}

// do runs terraform and fails the test if that made more calls than allowed.
func (c counter) do(t *testing.T, what string, most int, args ...string) (calls int) {
	t.Helper()
	before, received := c.tap.Counts(), c.tap.Received()
	out := c.cli.Must(append(args, "-no-color")...)
	kinds := []string{}
	for _, call := range slices.Sorted(maps.Keys(c.tap.Counts())) {
		if n := c.tap.Counts()[call] - before[call]; n > 0 {
			calls += n
			kinds = append(kinds, fmt.Sprintf("%d %s", n, call))
		}
	}
	t.Logf("%s: %d calls, %d bytes: %s", what, calls, c.tap.Received()-received, strings.Join(kinds, ", "))
	if calls > most {
		t.Errorf("%s: %d calls, at most %d are allowed\n%s", what, calls, most, out)
	}
	return calls
}

func (c counter) apply(t *testing.T, what string, most int) int {
	t.Helper()
	return c.do(t, what, most, "apply", "-auto-approve")
}

// onClaim is a machine on an overlay of a claim, and a blank disk that it gets later.
func onClaim(namespace, options string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "golden" {
  name        = "golden"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = %q, claim_name = "golden", %s } }
}
resource "virtclaim_disk" "root" {
  host       = "host-a"
  name       = "root"
  usage_type = "fast"
  source     = { volume = virtclaim_volume_binding.golden.volume }
  copy_mode  = "copy-on-write"
}
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "pc", domain_type = "qemu" }
  force_stop = true
  disks      = { root = { volume = virtclaim_disk.root.volume } }
}
`, namespace, options)
}

const plugged = `
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = "1Mi"
}
`

// What one machine costs in calls to its host, on each kind of storage. A new disk has three of the hot-plug: is its pool active?
func TestAccVirtualMachine_CallsOfOne(t *testing.T) {
	for name, c := range map[string]struct {
		storage func(*testing.T, *lab.Lab) (spec lab.ClaimSpec, options string)

		create, plan, plug, update, destroy int
	}{
		"iscsi": {iscsiClaim, 58, 15, 63, 35, 77},
		"file":  {fileClaim, 100, 39, 88, 58, 150}, // with a look at the claim's file in each plan
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			spec, options := c.storage(t, l)
			spec.Namespace, spec.Name = "counted", "golden"
			acctest.AddClaim(t, l, spec)
			cli, tap := acctest.Tapped(t, l, "counted")
			by := counter{cli, tap}
			cli.Write("main.tf", onClaim("counted", options))
			by.apply(t, "create and start", c.create)
			by.do(t, "unchanged plan", c.plan, "plan")
			cli.Write("data.tf", plugged)
			cli.Replace("main.tf", "disks      = { root", "disks      = { data = { volume = virtclaim_disk.data.volume }, root")
			by.apply(t, "hot-plug", c.plug)
			cli.Replace("main.tf", "force_stop = true", "force_stop = true\n  title = \"other\"")
			by.apply(t, "update", c.update)
			suspended(t, l.Hosts["host-a"])
			by.do(t, "destroy", c.destroy, "destroy", "-auto-approve")
		})
	}
}

func iscsiClaim(t *testing.T, l *lab.Lab) (spec lab.ClaimSpec, options string) {
	t.Helper()
	return lab.ClaimSpec{LUN: acctest.LUN(t, l, false, "")}, ""
}

func fileClaim(t *testing.T, _ *lab.Lab) (spec lab.ClaimSpec, options string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "disk.img"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	source := &corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}
	return lab.ClaimSpec{Filesystem: true, Size: 1 << 20, Source: source}, ""
}

// One machine is created beside domains of others whose disks are in no storage pool.
func TestAccVirtualMachine_CallsBesideForeignDomains(t *testing.T) {
	const domains, more = 20, 60
	l := acctest.Lab(t)
	dir := t.TempDir()
	cli, tap := acctest.Tapped(t, l, "counted")
	by := counter{cli, tap}
	cli.Write("main.tf", machinesWithDisks(1, 1))
	destroyed := func(what string, most int) int {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "suspend", "web-0"))(t) // its guest ignores its power button
		return by.do(t, what, most, "destroy", "-auto-approve")
	}
	create, destroy := by.apply(t, "create", 70), destroyed("destroy", 60)
	for n := range domains {
		foreign(t, l.Hosts["host-a"], filepath.Join(dir, fmt.Sprintf("foreign-%d", n)))
	}
	by.apply(t, "create beside others", create+more)
	destroyed("destroy beside others", destroy+more)
}

// foreign is a domain with a disk that is in no storage pool.
func foreign(t *testing.T, h *lab.Host, file string) {
	t.Helper()
	name := filepath.Base(file)
	acctest.ImageIn(t, filepath.Dir(file), name)
	err := h.DefineXML(t.Context(), fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>16</memory><os><type>hvm</type></os><devices>
		<disk type='file'><driver name='qemu' type='qcow2'/><source file='%s'/><target dev='vda' bus='virtio'/></disk></devices></domain>`, name, file))
	if err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error {
		_, err := h.Virsh(ctx, "undefine", name)
		return err
	})
}

// machinesWithDisks are n machines with some disks each.
func machinesWithDisks(n, disks int) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" "data" {
  count      = %d
  host       = "host-a"
  name       = "data-${count.index}"
  usage_type = "fast"
  size       = "1Mi"
}
resource "virtclaim_virtual_machine" "web" {
  count      = %d
  host       = "host-a"
  name       = "web-${count.index}"
  memory     = "32Mi"
  machine    = { type = "pc", domain_type = "qemu" }
  force_stop = true
  disks      = { for n in range(%[3]d) : "data-${n}" => { volume = virtclaim_disk.data[%[3]d * count.index + n].volume } }
}
`, n*disks, n, disks)
}

// Applies of twice as many machines cost little more a machine, an unchanged plan little a machine.
func TestAccVirtualMachine_CallsOfMany(t *testing.T) {
	const n = 50
	l := acctest.Lab(t)
	cli, tap := acctest.Tapped(t, l, "counted")
	by := counter{cli, tap}
	cli.Write("main.tf", machinesWithDisks(n/2, 2))
	half := by.apply(t, "create half", n/2*150)
	cli.Write("main.tf", machinesWithDisks(n, 2))
	by.apply(t, "create the others", 2*half)
	before := tap.Received()
	by.do(t, "unchanged plan", 700, "plan", "-detailed-exitcode")
	if bytes := tap.Received() - before; bytes > 2_000_000 {
		t.Errorf("the unchanged plan has read %d bytes", bytes)
	}
	for i := range n {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "suspend", fmt.Sprintf("web-%d", i)))(t)
	}
	by.do(t, "destroy", 3*n*40, "destroy", "-auto-approve")
}
