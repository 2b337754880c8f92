//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// traveller is the machine web, whose guest writes records to its first disk wherever it is.
type traveller struct {
	acctest.CLI
	lab    *lab.Lab
	stored func(offset int64, n int) string
}

func newTraveller(t *testing.T, l *lab.Lab, owner string, stored func(int64, int) string) traveller {
	t.Helper()
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, owner))
	return traveller{cli, l, stored}
}

// begins creates the machine, whose guest has written then.
func (w traveller) begins(t *testing.T, config string) {
	t.Helper()
	w.Write("main.tf", config)
	w.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, w.stored, 2)
}

// moves applies a configuration in which the running machine is on another host, where its guest goes on.
func (w traveller) moves(t *testing.T, host, config string) (out string) {
	t.Helper()
	w.Write("main.tf", config)
	out = w.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, out, "virtclaim_virtual_machine.web will be updated in-place", `-> "`+host+`"`)
	acctest.Contains(t, plan(t, w.CLI), "No changes.")
	isOnly(t, w.lab, "web", host, "running")
	acctest.AwaitRecords(t, w.stored, 2)
	return out
}

// goesAndReturns moves the machine there and back.
func (w traveller) goesAndReturns(t *testing.T, config func(host string) string) {
	t.Helper()
	w.begins(t, config("host-a"))
	w.moves(t, "host-b", config("host-b"))
	w.moves(t, "host-a", config("host-a"))
	w.destroy()
}

func (w traveller) destroy() { w.Must("destroy", "-auto-approve", "-no-color") }

// writer is the machine web on a host, with the disk data of the binding data before others.
func writer(t *testing.T, l *lab.Lab, m machine, disks ...string) func(host string) string {
	t.Helper()
	m.log, m.cmdline = acctest.NewConsole(t).Path(), lab.WriteRecords("vda")
	m.disks = append([]string{disk("data", "data", "virtio")}, disks...)
	return func(host string) string {
		m.host = host
		return m.hcl(l)
	}
}

// onLUN is a binding of both hosts to a claim on iSCSI.
func onLUN(t *testing.T, l *lab.Lab, namespace string) (binding string, stored func(int64, int) string) {
	t.Helper()
	lun := acctest.LUN(t, l, false, "")
	acctest.Claim(t, l, namespace, "data", lun)
	return claimBinding(namespace, "data", "write-exclusive", "host-a", "host-b"), acctest.InFile(t, lun.Path)
}

// On each kind of network storage a running machine goes to the other host and returns.
func TestAccVirtualMachine_MovesOnClaims(t *testing.T) {
	for _, name := range []string{"iscsi-chap", "ceph-csi", "nfs", "nfs-mounted"} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			k := kinds[name](t, l)
			acctest.AddClaim(t, l, lab.ClaimSpec{
				Namespace: "kinds", Name: name, Source: &k.source, Size: acctest.StorageSize, Filesystem: k.filesystem,
			})
			binding := bound(fmt.Sprintf(`persistent_volume_claim = { namespace = "kinds", claim_name = %q, %s }`, name, k.options),
				"write-exclusive", "host-a", "host-b")
			on := writer(t, l, machine{})
			newTraveller(t, l, "kinds", k.stored).goesAndReturns(t, func(host string) string { return binding + on(host) })
		})
	}
}

// The libvirtds do it by themselves. That both hosts have the same processor is seen without a list of the guest's features.
func TestAccVirtualMachine_MovesPeerToPeer(t *testing.T) {
	l := acctest.Lab(t)
	binding, stored := onLUN(t, l, "peers")
	on := writer(t, l, machine{more: `cpu = { vcpus = 1, mode = "maximum" }`})
	w := newTraveller(t, l, "peers", stored)
	w.peerToPeer()
	w.goesAndReturns(t, func(host string) string { return binding + on(host) })
}

// peerToPeer has the hosts' libvirtds migrate to each other.
func (w traveller) peerToPeer() {
	for _, h := range w.lab.Hosts {
		w.Replace("provider.tf", fmt.Sprintf("uri = %q", h.URI), fmt.Sprintf("uri = %q, migration_uri = %q", h.URI, lab.MigrationURI(h.URI)))
	}
}

// withSharedPool adds a pool that the hosts share, and returns its folder and the configuration of a provider with it as usage type shared.
func withSharedPool(t *testing.T, l *lab.Lab, owner string) (folder, provider string) {
	t.Helper()
	folder, remove, err := l.AddSharedPool(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, remove)
	provider = acctest.Provider(l, owner)
	for _, h := range []string{"host-a", "host-b"} {
		before := fmt.Sprintf("uri = %q, storage = {", l.Hosts[h].URI)
		provider = strings.Replace(provider, before, fmt.Sprintf("%s shared = \"shared-%s\",", before, h), 1)
	}
	return folder, provider
}

// sharedLayer is an overlay of a claim in a folder that the hosts share.
type sharedLayer struct{ folder, provider, golden string }

func newSharedLayer(t *testing.T, l *lab.Lab, namespace string) sharedLayer {
	t.Helper()
	folder, provider := withSharedPool(t, l, namespace)
	acctest.Claim(t, l, namespace, "golden", acctest.LUN(t, l, false, "golden"))
	return sharedLayer{folder, provider, claimBinding(namespace, "golden", "read-shared", "host-a", "host-b")}
}

func (s sharedLayer) hcl(host string) string {
	return s.golden + fmt.Sprintf(`
resource "virtclaim_disk" "root" {
  host       = %q
  hosts      = ["host-a", "host-b"]
  name       = "root"
  usage_type = "shared"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.golden.volume }
}
`, host)
}

// stored reads what the running guest has written to the overlay, without its master.
func (s sharedLayer) stored(t *testing.T) func(int64, int) string {
	t.Helper()
	const only = `json:{"driver":"qcow2","backing":null,"file":{"driver":"file","filename":%q}}`
	raw, ctx := filepath.Join(t.TempDir(), "raw"), context.WithoutCancel(t.Context())
	image := fmt.Sprintf(only, filepath.Join(s.folder, "root"))
	return func(offset int64, n int) string {
		out, err := exec.CommandContext(ctx, "qemu-img", "convert", "-U", "-O", "raw", image, raw).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return acctest.StoredAt(t, raw, offset, n)
	}
}

// An overlay of a claim in a folder that the hosts share goes along, whether its disk is managed by the same host or not.
func TestAccVirtualMachine_MovesOnSharedOverlay(t *testing.T) {
	l := acctest.Lab(t)
	layer := newSharedLayer(t, l, "overlays")
	w := newTraveller(t, l, "overlays", layer.stored(t))
	w.Write("provider.tf", layer.provider)
	m := machine{log: acctest.NewConsole(t).Path(), cmdline: lab.WriteRecords("vda"), disks: []string{told("root", "virtclaim_disk.root")}}
	on := func(disk, host string) string {
		m.host = host
		return layer.hcl(disk) + m.hcl(l)
	}
	w.begins(t, on("host-a", "host-a"))
	w.moves(t, "host-b", on("host-b", "host-b"))
	w.moves(t, "host-a", on("host-a", "host-a"))
	w.moves(t, "host-b", on("host-a", "host-b"))
	w.moves(t, "host-a", on("host-a", "host-a"))
	w.destroy()
	if left, err := os.ReadDir(layer.folder); len(left) > 0 || err != nil {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// The variables of the firmware and the state of the TPM of a running machine come along, and none of it stays behind.
func TestAccVirtualMachine_MovesWithFirmwareAndTPM(t *testing.T) {
	l := acctest.Lab(t)
	binding, stored := onLUN(t, l, "firmware")
	writes := writer(t, l, machine{memory: "256Mi", machineType: "q35", more: "firmware = { type = \"efi\" }\n  tpm = {}"})
	on := func(host string) string { return strings.Replace(writes(host), l.Guest.Kernel, l.Guest.Compressed, 1) } // which EFI starts
	w := newTraveller(t, l, "firmware", stored)
	w.begins(t, binding+on("host-a"))
	for _, way := range [][2]string{{"host-a", "host-b"}, {"host-b", "host-a"}} {
		w.moves(t, way[1], binding+on(way[1]))
		if has := stateOf(t, l.Hosts[way[1]], "web"); len(has) != 2 {
			t.Errorf("%s has of its state %q", way[1], has)
		}
		if left := stateOf(t, l.Hosts[way[0]], "web"); len(left) > 0 {
			t.Errorf("left behind on %s: %q", way[0], left)
		}
	}
	w.destroy()
	if left := slices.Concat(stateOf(t, l.Hosts["host-a"], "web"), stateOf(t, l.Hosts["host-b"], "web")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A seed is another file on each host: its drive is empty while the machine moves, and has the new one afterwards.
func TestAccVirtualMachine_MovesWithSeed(t *testing.T) {
	for name, lifecycle := range map[string]string{
		"destroyed before": "", "created before": "lifecycle { create_before_destroy = true }",
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			binding, stored := onLUN(t, l, "seeds")
			on := writer(t, l, machine{machineType: "q35"}, cdrom("seed", "virtclaim_disk.seed"))
			newTraveller(t, l, "seeds", stored).seeded(t, func(host string) string {
				return binding + on(host) + fmt.Sprintf(`
resource "virtclaim_disk" "seed" {
  host       = %q
  name       = "seed"
  usage_type = "fast"
  source     = { cloud_init = { user_data = "#cloud-config\n" } }
  %s
}
`, host, lifecycle)
			})
		})
	}
}

func (w traveller) seeded(t *testing.T, config func(host string) string) {
	t.Helper()
	w.begins(t, config("host-a"))
	for _, host := range []string{"host-b", "host-a"} {
		w.moves(t, host, config(host))
		h := w.lab.Hosts[host]
		acctest.Contains(t, acctest.Must(h.Shell(t.Context(), "web", "report_cdrom sr0"))(t), "label=cidata")
		acctest.Contains(t, acctest.Must(h.Virsh(t.Context(), "domblklist", "web", "--inactive"))(t), "/seed")
	}
	w.destroy()
}

// Four machines change places in one apply.
func TestAccVirtualMachine_MovesOfFour(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "four"))
	all := map[string]func(int64, int) string{}
	machines := map[string]machine{}
	for _, name := range []string{"east-1", "east-2", "west-1", "west-2"} {
		lun := acctest.LUN(t, l, false, "")
		acctest.Claim(t, l, "four", name, lun)
		all[name] = acctest.InFile(t, lun.Path)
		machines[name] = machine{
			name: name, log: acctest.NewConsole(t).Path(), cmdline: lab.WriteRecords("vda"), disks: []string{disk("data", name, "virtio")},
		}
	}
	for round, hosts := range []map[string]string{
		{"east": "host-a", "west": "host-b"}, {"east": "host-b", "west": "host-a"}, {"east": "host-a", "west": "host-b"},
	} {
		config := ""
		for name, m := range machines {
			m.host = hosts[name[:4]]
			config += claimBinding("four", name, "write-exclusive", "host-a", "host-b") + m.hcl(l)
		}
		cli.Write("main.tf", config)
		out := cli.Must("apply", "-auto-approve", "-no-color")
		if round > 0 {
			acctest.Contains(t, out, "0 added, 4 changed, 0 destroyed")
		}
		acctest.Contains(t, plan(t, cli), "No changes.")
		for name, stored := range all {
			isOnly(t, l, name, hosts[name[:4]], "running")
			acctest.AwaitRecords(t, stored, 2)
		}
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// What is taken from the machine leaves it before the move, and what it gets is plugged on the new host: both are storage of one host.
func TestAccVirtualMachine_MovesWithOtherChanges(t *testing.T) {
	l := acctest.Lab(t)
	binding, stored := onLUN(t, l, "others")
	for _, name := range []string{"old", "new"} {
		acctest.Claim(t, l, "others", name, acctest.LUN(t, l, false, name))
	}
	console := acctest.NewConsole(t).Path()
	on := func(host, memory, name string) string {
		return binding + claimBinding("others", name, "write-exclusive", host) + machine{
			host: host, memory: memory, log: console, cmdline: lab.WriteRecords("vda"), more: `max_memory = "256Mi"`,
			disks: []string{disk("data", "data", "virtio"), disk(name, name, "virtio")},
		}.hcl(l)
	}
	w := newTraveller(t, l, "others", stored)
	w.begins(t, on("host-a", "128Mi", "old"))
	w.moves(t, "host-b", on("host-b", "160Mi", "new"))
	h := l.Hosts["host-b"]
	acctest.Contains(t, acctest.Must(h.Shell(t.Context(), "web", "head -c 3 /dev/vd[b-z]; echo"))(t), "new")
	acctest.Contains(t, acctest.Must(h.Virsh(t.Context(), "dumpxml", "web"))(t), "<currentMemory unit='KiB'>163840<")
	w.moves(t, "host-a", on("host-a", "128Mi", "old"))
	w.destroy()
}

// A binding gets the other host in the apply that moves its machine there.
func TestAccVirtualMachine_MovesWithBinding(t *testing.T) {
	l := acctest.Lab(t)
	_, stored := onLUN(t, l, "bindings")
	on := writer(t, l, machine{})
	to := func(host string, hosts ...string) string {
		return claimBinding("bindings", "data", "write-exclusive", hosts...) + on(host)
	}
	w := newTraveller(t, l, "bindings", stored)
	w.begins(t, to("host-a", "host-a"))
	w.moves(t, "host-b", to("host-b", "host-a", "host-b"))
	w.Write("main.tf", to("host-b", "host-b"))
	w.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, w.CLI), "No changes.")
	w.moves(t, "host-a", to("host-a", "host-b", "host-a"))
	w.destroy()
}

// What libvirt would not take along, or forget, is as it was: the start with the host, the title, a password that only libvirt has, and a
// change that the running guest does not have yet.
func TestAccVirtualMachine_MovesWithSettings(t *testing.T) {
	l := acctest.Lab(t)
	binding, stored := onLUN(t, l, "settings")
	const settings, password = "autostart = true\n  title = \"of all\"\n", "xa7Qp2Lm"
	m := machine{log: acctest.NewConsole(t).Path(), cmdline: lab.WriteRecords("vda"), disks: []string{disk("data", "data", "virtio")}}
	on := func(host string, processors int) string {
		m.host = host
		m.more = settings + fmt.Sprintf(`
  graphics = { type = "vnc", password_wo = %q, password_wo_version = 1 }
  cpu      = { vcpus = 1, max_vcpus = %d }`, password, processors)
		return binding + m.hcl(l) + `
output "pending" { value = join(" ", virtclaim_virtual_machine.web.pending) }
output "display" { value = virtclaim_virtual_machine.web.endpoints.graphics }
`
	}
	w := newTraveller(t, l, "settings", stored)
	w.begins(t, on("host-a", 1))
	w.Write("main.tf", on("host-a", 2))
	w.Must("apply", "-auto-approve", "-no-color")
	pending := w.Must("output", "-raw", "pending")
	if pending == "" {
		t.Fatal("nothing is pending")
	}
	for _, host := range []string{"host-b", "host-a"} {
		w.moves(t, host, on(host, 2))
		if now := w.Must("output", "-raw", "pending"); now != pending {
			t.Errorf("pending was %q, and is %q", pending, now)
		}
		h := l.Hosts[host]
		acctest.Contains(t, acctest.Must(h.Virsh(t.Context(), "dumpxml", "web"))(t), "<vcpu placement='static'>1<", "<title>of all<")
		acctest.Contains(t, acctest.Must(h.Virsh(t.Context(), "dumpxml", "--inactive", "--security-info", "web"))(t),
			"current='1'>2<", "<title>of all<", "passwd='"+password+"'")
		acctest.Contains(t, strings.Join(strings.Fields(acctest.Must(h.Virsh(t.Context(), "dominfo", "web"))(t)), " "),
			"Autostart: enable")
		for try, want := range map[string]bool{password: true, "another": false} {
			if in, err := letIn(t, w.Must("output", "-raw", "display"), try); in != want || err != nil {
				t.Errorf("with the password %s: %t, %v", try, in, err)
			}
		}
	}
	w.destroy()
}
