//go:build acc

package virtualmachine_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
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

// companion is the machine web with a disk root of its own host, which goes along.
type companion struct {
	traveller
	// before is the configuration besides both, and attributes are further ones of the disk.
	before, attributes string
	machine            machine
	// at is the host of both.
	at string
}

func newCompanion(t *testing.T, l *lab.Lab, owner, before, attributes string) *companion {
	t.Helper()
	c := &companion{before: before, attributes: attributes, at: "host-a", machine: machine{
		log: acctest.NewConsole(t).Path(), cmdline: lab.WriteRecords("vda"), disks: []string{told("root", "virtclaim_disk.root")},
	}}
	c.traveller = newTraveller(t, l, owner, c.storedOnHost(t, "root"))
	return c
}

// diskOn is a disk of a host.
func diskOn(host, name, attributes string) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" %[2]q {
  host       = %[1]q
  name       = %[2]q
  usage_type = "fast"
  %[3]s
}
`, host, name, attributes)
}

func (c *companion) on(host string) string {
	c.machine.host = host
	return c.before + diskOn(host, "root", c.attributes) + c.machine.hcl(c.lab)
}

// storedOnHost reads the top layer of a disk on the host that has it.
func (c *companion) storedOnHost(t *testing.T, name string) func(int64, int) string {
	t.Helper()
	raw, ctx := filepath.Join(t.TempDir(), "raw"), context.WithoutCancel(t.Context())
	return func(offset int64, n int) string {
		file := filepath.Join(c.lab.Hosts[c.at].Dir, "pools", "ssd", name)
		top := fmt.Sprintf(`json:{"driver":"qcow2","backing":null,"file":{"driver":"file","filename":%q}}`, file)
		if strings.Contains(c.attributes, `"raw"`) {
			top = fmt.Sprintf(`json:{"driver":"raw","file":{"driver":"file","filename":%q}}`, file)
		}
		if out, err := exec.CommandContext(ctx, "qemu-img", "convert", "-U", "-O", "raw", top, raw).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return acctest.StoredAt(t, raw, offset, n)
	}
}

// goes moves both to a host, where nothing is left on the other one.
func (c *companion) goes(t *testing.T, host string) {
	t.Helper()
	from := c.at
	c.at = host
	out := c.moves(t, host, c.on(host))
	acctest.Contains(t, out, "virtclaim_disk.root will be updated in-place")
	c.isAlone(t, from)
}

// isAlone fails the test if a host has volumes or domains of virtclaim's.
func (c *companion) isAlone(t *testing.T, left string) {
	t.Helper()
	h, ctx := c.lab.Hosts[left], context.WithoutCancel(t.Context())
	if all := acctest.Must(h.Virsh(ctx, "vol-list", "ssd"))(t); strings.Contains(all, "root") || strings.Contains(all, "virtclaim") {
		t.Errorf("%s still has:\n%s", left, all)
	}
	for key, h := range c.lab.Hosts {
		if all := acctest.Must(h.Virsh(ctx, "list", "--all", "--name"))(t); strings.Contains(all, "virtclaim-") {
			t.Errorf("%s has the record of a disk:\n%s", key, all)
		}
	}
}

// Disks of one host go along with a running machine, there and back.
func TestAccVirtualMachine_DiskMoves(t *testing.T) {
	for name, attributes := range map[string]string{
		"blank": `size = "16Mi"`,
		"raw":   "size = \"16Mi\"\n  format = \"raw\"",
		"clone": "copy_mode = \"clone\"\n  source = { volume = virtclaim_volume_binding.golden.volume }",
		"layer": "copy_mode = \"copy-on-write\"\n  source = { volume = virtclaim_volume_binding.golden.volume }",
		"peers": "copy_mode = \"copy-on-write\"\n  source = { volume = virtclaim_volume_binding.golden.volume }",
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "along", "golden", acctest.LUN(t, l, false, "golden"))
			c := newCompanion(t, l, "along", claimBinding("along", "golden", "read-shared", "host-a", "host-b"), attributes)
			if name == "peers" {
				c.peerToPeer()
			}
			c.begins(t, c.on("host-a"))
			c.goes(t, "host-b")
			c.goes(t, "host-a")
			c.destroy()
			c.isAlone(t, "host-a")
		})
	}
}

// containerDisk is the reference of a container image with a blank disk image.
func containerDisk(t *testing.T, l *lab.Lab) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image")
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-f", "qcow2", file, "16M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "along/disk", Tag: "v1",
		Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/image": acctest.Must(os.ReadFile(file))(t)}}},
	}))(t).Reference
}

// The image that disks of a container image share is made on the other host first, unless it is there. The last disk over it takes it along.
// Its tag may stand for another image by now.
func TestAccVirtualMachine_DiskMovesOfContainerImage(t *testing.T) {
	l := acctest.Lab(t)
	from := fmt.Sprintf("source = { container_image = { image = %q } }", containerDisk(t, l))
	c := newCompanion(t, l, "containers", "", from)
	second := machine{name: "second", log: acctest.NewConsole(t).Path(), cmdline: lab.WriteRecords("vda"), disks: []string{told("second", "virtclaim_disk.second")}}
	stored := c.storedOnHost(t, "second")
	both := func(host string) {
		second.host = host
		c.before = diskOn(host, "second", from) + second.hcl(l)
	}
	both("host-a")
	c.begins(t, c.on("host-a"))
	acctest.AwaitRecords(t, stored, 2)
	containerDisk(t, l) // pushed again, as another image
	both("host-b")
	c.goes(t, "host-b") // two at once
	acctest.AwaitRecords(t, stored, 2)
	c.before = strings.ReplaceAll(c.before, "host-b", "host-a")
	c.Write("main.tf", c.before+strings.TrimPrefix(c.on("host-b"), c.before))
	c.Must("apply", "-auto-approve", "-no-color") // the image is on both hosts now
	both("host-a")
	c.goes(t, "host-a")
	c.before = ""
	c.destroy()
	c.isAlone(t, "host-a")
}

// The calls of the move of a machine with a disk, besides those without one.
var (
	withDiskLeaves = map[lab.Call]int{lab.CallMigratePerform: 1, lab.CallMigrateConfirm: 1, lab.CallVolumeDelete: 1}
	withDiskComes  = map[lab.Call]int{
		lab.CallVolumeCreate: 1, lab.CallVolumeUpload: 1, lab.CallDefine: 5, lab.CallMigratePrepare: 1, lab.CallMigrateFinish: 1,
		lab.CallUndefine: 1,
	}
)

// newMoverWithDisk has the machine's disk root instead of a claim.
func newMoverWithDisk(t *testing.T, name, attributes, more string) (m *mover, stored func(int64, int) string) {
	t.Helper()
	l := acctest.Lab(t)
	m = &mover{lab: l, host: "host-a", attributes: attributes}
	m.CLI, m.taps = acctest.TappedHosts(t, l, name)
	m.machine = machine{
		name: name, log: acctest.NewConsole(t).Path(), disks: []string{told("root", "virtclaim_disk.root")}, more: more,
		cmdline: lab.WriteRecords("vda"),
	}
	return m, func(offset int64, n int) string {
		at := &companion{at: m.runsOn(t), attributes: attributes}
		at.lab = l
		return at.storedOnHost(t, "root")(offset, n)
	}
}

// runsOn is the host that has the machine, and more than a definition where one has that. A disk alone is where it was moved.
func (m *mover) runsOn(t *testing.T) (on string) {
	t.Helper()
	if m.machine.name == "" {
		return m.host
	}
	for _, key := range []string{"host-a", "host-b"} {
		out, err := m.lab.Hosts[key].Virsh(context.WithoutCancel(t.Context()), "domstate", m.machine.name)
		if err == nil && (on == "" || strings.TrimSpace(out) == "running") {
			on = key
		}
	}
	return on
}

// A move with a disk that is refused, cut or killed at each call leaves the guest on one host with all that it has written, and the next
// apply completes it.
func TestAccVirtualMachine_DiskMoveFaults(t *testing.T) {
	m, stored := newMoverWithDisk(t, "movediskfaults", `size = "16Mi"`, "")
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	m.testDiskFaults(t, "leaves", withDiskLeaves, stored)
	m.testDiskFaults(t, "comes", withDiskComes, stored)
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

func (m *mover) testDiskFaults(t *testing.T, side string, calls map[lab.Call]int, stored func(int64, int) string) {
	t.Helper()
	m.testEachFault(t, side, acctest.Points(calls, ways), func(t *testing.T) {
		t.Helper()
		m.is(m.host, "running")(t)
		acctest.AwaitRecords(t, stored, 2)
	})
}

// testEachFault moves the machine, or its disk alone, with a fault at each call on one side. check is called when all was put right.
func (m *mover) testEachFault(t *testing.T, side string, faults []lab.Fault, check func(*testing.T)) {
	t.Helper()
	for _, fault := range faults {
		t.Run(side+"/"+fault.String(), func(t *testing.T) {
			from, to := m.host, m.other()
			m.config(to)
			_, _ = acctest.Interrupt(t, m.CLI, m.taps[map[string]string{"leaves": from, "comes": to}[side]], fault)
			m.runsOnce(t)
			m.host = to
			acctest.PutRight(t, m.CLI, nil)
			check(t)
			m.isClean(t)
		})
	}
}

// The calls of the move of a disk by the provider, with a machine that is off and without one.
var (
	copyLeaves = map[lab.Call]int{lab.CallVolumeDownload: 2, lab.CallDefine: 1, lab.CallUndefine: 1, lab.CallVolumeDelete: 1}
	copyComes  = map[lab.Call]int{
		lab.CallVolumeCreate: 2, lab.CallVolumeDelete: 1, lab.CallVolumeUpload: 4, lab.CallCreateXML: 1, lab.CallDefine: 6,
		lab.CallUndefine: 1,
	}
	aloneLeaves = map[lab.Call]int{lab.CallVolumeDownload: 2, lab.CallDefine: 1, lab.CallVolumeDelete: 1}
	aloneComes  = map[lab.Call]int{
		lab.CallVolumeCreate: 2, lab.CallVolumeDelete: 1, lab.CallVolumeUpload: 4, lab.CallCreateXML: 1, lab.CallDefine: 3,
		lab.CallUndefine: 1,
	}
)

// So does the copy of a disk whose machine is off, or that no machine has: whatever is interrupted, its content is there once after the next
// apply.
func TestAccVirtualMachine_DiskMoveFaultsOff(t *testing.T) {
	m, stored := newMoverWithDisk(t, "diskmoveoff", `size = "16Mi"`, "")
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	m.machine.more = "running = false\n  force_stop = true"
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	want := acctest.Records(t, stored)
	has := func(t *testing.T) {
		t.Helper()
		if is := acctest.Records(t, stored); is != want {
			t.Errorf("the disk had %d records, and has %d", want, is)
		}
	}
	off := func(t *testing.T) {
		t.Helper()
		m.is(m.host, "shut off")(t)
		has(t)
	}
	m.testEachFault(t, "leaves", acctest.Points(copyLeaves, ways), off)
	m.testEachFault(t, "comes", acctest.Points(copyComes, ways), off)
	m.machine.name = ""
	t.Run("alone", func(t *testing.T) {
		m.config(m.host)
		m.Must("apply", "-auto-approve", "-no-color")
		m.testEachFault(t, "leaves", acctest.Points(aloneLeaves, ways), has)
		// The last call of all: an apply that is killed after it has not told Terraform of the move, as of a creation.
		m.testEachFault(t, "leaves", acctest.Points(map[lab.Call]int{lab.CallUndefine: 1}, ways[:3]), has)
		m.testEachFault(t, "comes", acctest.Points(aloneComes, ways), has)
	})
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

// isClean fails the test if there is more of disks than the disk of the machine, where the machine is.
func (m *mover) isClean(t *testing.T) {
	t.Helper()
	ctx, on := context.WithoutCancel(t.Context()), m.runsOn(t)
	for key, h := range m.lab.Hosts {
		if all := acctest.Must(h.Virsh(ctx, "list", "--all", "--name"))(t); strings.Contains(all, "virtclaim-") {
			t.Errorf("%s has the record of a disk:\n%s", key, all)
		}
		if all := acctest.Must(h.Virsh(ctx, "vol-list", "ssd"))(t); key != on && strings.Contains(all, "root") {
			t.Errorf("%s has a disk:\n%s", key, all)
		}
	}
}

// A machine that is off, or is shut down for it, has its disks copied by the provider. So has a disk that no machine has.
func TestAccVirtualMachine_DiskMovesOff(t *testing.T) {
	for name, attributes := range map[string]string{
		"blank":     `size = "1Gi"`,
		"raw":       "size = \"64Mi\"\n  format = \"raw\"",
		"layer":     "copy_mode = \"copy-on-write\"\n  source = { volume = virtclaim_volume_binding.golden.volume }",
		"container": "",
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "carried", "golden", acctest.LUN(t, l, false, "golden"))
			if attributes == "" {
				attributes = fmt.Sprintf("source = { container_image = { image = %q } }", containerDisk(t, l))
			}
			c := newCompanion(t, l, "carried", claimBinding("carried", "golden", "read-shared", "host-a", "host-b"), attributes)
			c.begins(t, c.on("host-a"))
			c.machine.more = "running = false\n  force_stop = true"
			c.apply(t, c.on("host-a"))
			before := acctest.Records(t, c.stored)
			c.at = "host-b"
			c.apply(t, c.on("host-b")) // off
			if after := acctest.Records(t, c.stored); after != before {
				t.Errorf("the disk had %d records, and has %d", before, after)
			}
			c.isAlone(t, "host-a")
			bare := c.before + diskOn("host-b", "root", c.attributes)
			c.apply(t, bare)
			c.at = "host-a"
			c.apply(t, strings.Replace(bare, `host       = "host-b"`, `host       = "host-a"`, 1)) // without a machine
			if after := acctest.Records(t, c.stored); after != before {
				t.Errorf("the disk had %d records, and has %d", before, after)
			}
			c.isAlone(t, "host-b")
			c.destroy()
			c.isAlone(t, "host-a")
		})
	}
}

// apply applies a configuration, after which nothing is left to do.
func (w traveller) apply(t *testing.T, config string) {
	t.Helper()
	w.Write("main.tf", config)
	w.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, w.CLI), "No changes.")
}

// A disk without its machine, a machine without its disk, and a disk with others over it stay where they are, and the plan says why.
func TestAccVirtualMachine_DiskMoveRefused(t *testing.T) {
	l := acctest.Lab(t)
	c := newCompanion(t, l, "refused", "", `size = "16Mi"`)
	over := func(host string) string {
		return diskOn(host, "over", "copy_mode = \"copy-on-write\"\n  source = { volume = virtclaim_disk.master.volume }")
	}
	master := diskOn("host-a", "master", `size = "16Mi"`)
	c.before = master + over("host-a")
	c.begins(t, c.on("host-a"))
	for name, r := range map[string]struct{ config, want string }{
		"disk alone":    {strings.Replace(c.on("host-a"), diskOn("host-a", "root", c.attributes), diskOn("host-b", "root", c.attributes), 1), "A disk of another host"},
		"machine alone": {strings.Replace(c.on("host-b"), diskOn("host-b", "root", c.attributes), diskOn("host-a", "root", c.attributes), 1), "A disk of another host"},
		"master":        {strings.Replace(c.on("host-a"), master, diskOn("host-b", "master", `size = "16Mi"`), 1), "A master stays on its host"},
		"growing":       {strings.ReplaceAll(c.on("host-b"), `size = "16Mi"`, `size = "32Mi"`), "A disk that moves does not grow"},
	} {
		c.Write("main.tf", r.config)
		out, err := c.Run("plan", "-no-color")
		if err == nil || !strings.Contains(out, r.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	c.Write("main.tf", c.on("host-a"))
	acctest.Contains(t, plan(t, c.CLI), "No changes.")
	c.destroy()
}

// What was prepared for a move that failed is taken back by the former host, or destroyed; the guest has its disk all the time.
func TestAccVirtualMachine_DiskMoveGivenUp(t *testing.T) {
	m, stored := newMoverWithDisk(t, "movediskgivenup", `size = "16Mi"`, "")
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	for _, fault := range []lab.Fault{
		{Call: lab.CallVolumeCreate, Nth: 1, After: true, Kill: true},
		{Call: lab.CallMigratePrepare, Nth: 1, Refuse: true},
		{Call: lab.CallMigratePrepare, Nth: 1, Kill: true},
	} {
		t.Run(fault.String(), func(t *testing.T) {
			m.config("host-b")
			_, _ = acctest.Interrupt(t, m.CLI, m.taps["host-b"], fault)
			acctest.AwaitRecords(t, stored, 2)
			m.config("host-a")
			acctest.PutRight(t, m.CLI, m.is("host-a", "running"))
			acctest.AwaitRecords(t, stored, 2)
		})
	}
	m.config("host-b")
	_, _ = acctest.Interrupt(t, m.CLI, m.taps["host-b"], lab.Fault{Call: lab.CallMigratePrepare, Nth: 1, Refuse: true})
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

// A machine that runs a container image goes with its root; its kernel, its environment and its files of fw_cfg are made on the other host.
func TestAccVirtualMachine_DiskMovesOfContainerMachine(t *testing.T) {
	l := acctest.Lab(t)
	const script = `n=0; while :; do n=$((n+1)); echo $n >/count; /bin/busybox sync; echo "count=$(/bin/busybox cat /count) set=$SET"; /bin/busybox sleep 1; done`
	console := acctest.NewConsole(t)
	base := runnable(t, l, script, nil) + diskOn("host-a", "environment", `source = { environment = { variables_wo = { SET = "yes" }, variables_wo_version = 1 } }`) +
		diskOn("host-a", "ignition", "lifecycle { create_before_destroy = true }\n  source = { ignition = { config = jsonencode({ ignition = { version = \"3.4.0\" } }) } }") +
		runs(console, `environment_from = ["secrets"]`, `fw_cfg = { "opt/com.coreos/config" = virtclaim_disk.ignition.volume.images[0].uri }`, "secrets = { volume = virtclaim_disk.environment.volume }")
	const source = "source     = { container_image"
	base = strings.Replace(base, source, "lifecycle { create_before_destroy = true }\n  "+source, 1) // of the kernel
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "machines"))
	cli.Write("main.tf", base)
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "count=3 set=yes")
	for _, host := range []string{"host-b", "host-a"} {
		cli.Write("main.tf", strings.ReplaceAll(base, "host-a", host))
		out := cli.Must("apply", "-auto-approve", "-no-color")
		acctest.Contains(t, out, "virtclaim_virtual_machine.web will be updated in-place", "virtclaim_disk.root will be updated in-place")
		acctest.Contains(t, plan(t, cli), "No changes.")
		isOnly(t, l, "web", host, "running")
		acctest.Contains(t, acctest.Must(l.Hosts[host].Virsh(t.Context(), "dumpxml", "web"))(t), "<entry name='opt/com.coreos/config' file='"+l.Hosts[host].Dir)
		last := len(console.Lines("count="))
		console.Await(t, fmt.Sprintf("count=%d set=yes", last+3))
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// behind is what a disk has behind the records of its guest, whose digest stays the same.
const behind = 48 << 20

// behindOf is the digest of that part of the disk.
func behindOf(stored func(int64, int) string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(stored(lab.RecordsAt+lab.RecordsSize, behind))))
}

// A copy that is broken off in its middle, by the end of the provider, of either libvirtd or of room in the pool, leaves the guest with its
// disk where it was, and the next apply moves both.
func TestAccVirtualMachine_DiskMoveBrokenOff(t *testing.T) {
	m, stored := newMoverWithDisk(t, "movediskbroken", `size = "64Mi"`, "")
	m.machine.cmdline = ""
	m.machine.more = "running = false"
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	m.fillBehind(t)
	m.machine.cmdline, m.machine.more = lab.WriteRecords("vda"), ""
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	want := behindOf(stored)
	for name, midway := range map[string]func(t *testing.T, from, to *lab.Host, apply *exec.Cmd){
		"provider": func(t *testing.T, _, _ *lab.Host, apply *exec.Cmd) {
			t.Helper()
			if err := acctest.KillProvider(apply); err != nil {
				t.Fatal(err)
			}
		},
		"ctrl-c": func(t *testing.T, _, _ *lab.Host, apply *exec.Cmd) {
			t.Helper()
			if err := apply.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		},
		"source": func(t *testing.T, from, _ *lab.Host, _ *exec.Cmd) { t.Helper(); restartHost(t, from) },
		"target": func(t *testing.T, _, to *lab.Host, _ *exec.Cmd) { t.Helper(); restartHost(t, to) },
	} {
		t.Run(name, func(t *testing.T) {
			from, to := m.host, m.other()
			m.machine.more = "migration = { bandwidth = 4 }"
			m.config(to)
			cmd, output := m.Start("apply", "-auto-approve", "-no-color")
			acctest.Eventually(t, "the disk is being copied", func() error {
				job, err := m.lab.Hosts[from].Virsh(t.Context(), "domjobinfo", m.machine.name)
				if err == nil && !strings.Contains(job, "File processed") {
					err = errors.New(job)
				}
				return err
			})
			midway(t, m.lab.Hosts[from], m.lab.Hosts[to], cmd)
			if err := cmd.Wait(); err == nil {
				t.Errorf("the apply succeeded:\n%s", output())
			}
			m.runsOnce(t)
			m.machine.more = ""
			m.config(to)
			acctest.PutRight(t, m.CLI, m.is(to, "running"))
			m.host = to
			acctest.AwaitRecords(t, stored, 2)
			if is := behindOf(stored); is != want {
				t.Errorf("the disk has other content: %s, not %s", is, want)
			}
			m.isClean(t)
		})
	}
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

func restartHost(t *testing.T, h *lab.Host) {
	t.Helper()
	if err := h.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fillBehind writes random content into the disk of the machine, which is off.
func (m *mover) fillBehind(t *testing.T) {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw")
	content := make([]byte, lab.RecordsAt+lab.RecordsSize+behind)
	_, _ = rand.Read(content[lab.RecordsAt+lab.RecordsSize:])
	if err := os.WriteFile(raw, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(raw, 64<<20); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.lab.Hosts[m.host].Dir, "pools", "ssd", "root")
	if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-n", "-f", "raw", "-O", "qcow2", raw, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A pool that is full before the copy is refused with both numbers, and one that gets full while the disk is copied leaves the guest with its
// disk where it was.
func TestAccVirtualMachine_DiskMoveFull(t *testing.T) {
	const room = 80 << 20
	m, stored := newMoverWithDisk(t, "movediskfull", `size = "64Mi"`, "")
	remove := acctest.Must(m.lab.Hosts["host-b"].AddSmallPool(t.Context(), "tiny", room))(t)
	acctest.Undo(t, remove)
	m.Replace("provider.tf", fmt.Sprintf("host-b = { uri = %q, storage = { fast = \"ssd\"", m.taps["host-b"].URI),
		fmt.Sprintf("host-b = { uri = %q, storage = { fast = \"tiny\"", m.taps["host-b"].URI))
	m.machine.more = "running = false"
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	m.fillBehind(t)
	m.machine.more = ""
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	want := behindOf(stored)
	junk := filepath.Join(m.lab.Hosts["host-b"].Pools, "tiny", "junk")
	fill := func(mib int) {
		t.Helper()
		acctest.Must(m.lab.Hosts["host-b"].Run(t.Context(), fmt.Sprintf("head -c %dM /dev/zero >%s", mib, junk)))(t)
	}
	fill(60)
	m.config("host-b")
	out, err := m.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !strings.Contains(out, "Too little room for the disk") {
		t.Errorf("%v:\n%s", err, out)
	}
	fill(0)
	m.taps["host-b"].Arm(lab.Fault{Call: lab.CallMigratePrepare, Nth: 1, Hold: true})
	cmd, output := m.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the migration is about to begin", func() error {
		if !m.taps["host-b"].Fired() {
			return errors.New("not yet")
		}
		return nil
	})
	fill(60)
	m.taps["host-b"].Release()
	if err := cmd.Wait(); err == nil {
		t.Errorf("the apply succeeded:\n%s", output())
	}
	isOnly(t, m.lab, m.machine.name, "host-a", "running")
	acctest.AwaitRecords(t, stored, 2)
	fill(0)
	acctest.PutRight(t, m.CLI, m.is("host-b", "running"))
	m.config("host-a")
	acctest.PutRight(t, m.CLI, m.is("host-a", "running"))
	acctest.AwaitRecords(t, stored, 2)
	if is := behindOf(stored); is != want {
		t.Errorf("the disk has other content: %s, not %s", is, want)
	}
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

// A disk that is written to on its former host while it is copied stays there; the next apply moves what it has then.
func TestAccVirtualMachine_DiskMoveWrittenMeanwhile(t *testing.T) {
	m, stored := newMoverWithDisk(t, "diskmovewritten", `size = "64Mi"`, "running = false")
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	m.fillBehind(t)
	m.taps["host-b"].Arm(lab.Fault{Call: lab.CallVolumeUpload, Nth: 3, Hold: true})
	m.config("host-b")
	cmd, output := m.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the copy is about to be completed", func() error {
		if !m.taps["host-b"].Fired() {
			return errors.New("not yet")
		}
		return nil
	})
	file := filepath.Join(m.lab.Hosts["host-a"].Dir, "pools", "ssd", "root")
	if out, err := exec.CommandContext(t.Context(), "qemu-io", "-f", "qcow2", "-c", "write -P 90 16M 64k", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.taps["host-b"].Release()
	if err := cmd.Wait(); err == nil || !strings.Contains(strings.Join(strings.Fields(output()), " "), "while it was copied") {
		t.Errorf("%v:\n%s", err, output())
	}
	m.host = "host-b"
	acctest.PutRight(t, m.CLI, m.is("host-b", "shut off"))
	if is := stored(16<<20, 8); is != "ZZZZZZZZ" {
		t.Errorf("what was written is %q", is)
	}
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

// Without the record of a move, a domain that was removed by hand, neither file is taken for the disk until only one of them is left.
func TestAccVirtualMachine_DiskMoveRecordRemoved(t *testing.T) {
	m, stored := newMoverWithDisk(t, "diskmoverecord", `size = "64Mi"`, "running = false")
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	m.fillBehind(t)
	want := behindOf(stored)
	m.config("host-b")
	m.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_disk.root")
	b := m.lab.Hosts["host-b"]
	for _, name := range strings.Fields(acctest.Must(b.Virsh(t.Context(), "list", "--all", "--name"))(t)) {
		if strings.HasPrefix(name, "virtclaim-") {
			acctest.Must(b.Virsh(t.Context(), "undefine", name))(t)
		}
	}
	for _, args := range [][]string{{"plan"}, {"apply", "-auto-approve"}, {"apply", "-auto-approve", "-refresh=false"}} {
		out, err := m.Run(append(args, "-no-color")...)
		if err == nil || !strings.Contains(out, "Where the disk's content is, is not known") && !strings.Contains(out, "the record of its move") {
			t.Errorf("%q: %v:\n%s", args, err, out)
		}
	}
	acctest.Must(b.Virsh(t.Context(), "vol-delete", "root", "--pool", "ssd"))(t)
	m.host = "host-b"
	acctest.PutRight(t, m.CLI, m.is("host-b", "shut off"))
	if is := behindOf(stored); is != want {
		t.Errorf("the disk has other content: %s, not %s", is, want)
	}
	m.Must("destroy", "-auto-approve", "-no-color")
	m.isClean(t)
}

// A disk without a machine whose copy was killed can be destroyed, which leaves nothing on either host.
func TestAccVirtualMachine_DiskMoveDestroyed(t *testing.T) {
	m, _ := newMoverWithDisk(t, "diskmovedestroyed", `size = "16Mi"`, "")
	m.machine.name = ""
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	m.config("host-b")
	_, _ = acctest.Interrupt(t, m.CLI, m.taps["host-b"], lab.Fault{Call: lab.CallVolumeUpload, Nth: 2, Kill: true})
	m.Must("destroy", "-auto-approve", "-no-color")
	m.host = ""
	m.isClean(t)
}
