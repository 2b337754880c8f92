//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// ways are how each call fails. A kill before a call is the same as a kill after the one before it.
var ways = []lab.Fault{{Refuse: true}, {}, {After: true}, {After: true, Kill: true}}

// After an interruption at any point of an apply that creates, changes or destroys a machine, one more apply leads to the configured state,
// the machine runs as it is stored, and in the end nothing is left.
func TestAccVirtualMachine_FaultInjection(t *testing.T) {
	w := newNetworked(t)
	for name, test := range map[string]func(*testing.T, faulty){"live": testLiveFaults, "power": testPowerFaults, "life": testLifeFaults} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newFaulty(t, w, name))
		})
	}
}

// faulty is a machine and its disks, in a folder whose provider is connected to the host with networks through a tap.
type faulty struct {
	networked
	acctest.CLI
	tap  *lab.Tap
	name string
}

func newFaulty(t *testing.T, w networked, name string) faulty {
	t.Helper()
	w.console = acctest.NewConsole(t)
	f := faulty{w, acctest.NewCLI(t), acctest.Tap(t, w.Host), name}
	f.Write("provider.tf", fmt.Sprintf(`
provider "virtclaim" {
  owner = "faults"
  hosts = { %s = { uri = %q, storage = { fast = "ssd" } } }
}
`, w.Name, f.tap.URI))
	return f
}

// disks are blank disks, with the machine's name and the given ones.
func (f faulty) disks(names ...string) (text string) {
	for _, name := range names {
		text += fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = %[2]q
  name       = "%[3]s-%[1]s"
  usage_type = "fast"
  size       = "1Mi"
  format     = "raw"
}
`, name, f.Name, f.name)
	}
	return text
}

func (f faulty) machine(m machine) string {
	m.name, m.host, m.log = f.name, f.Name, f.console.Path()
	return m.hcl(f.lab)
}

// interrupt makes a change with a fault, and again without.
func (f faulty) interrupt(t *testing.T, config string, fault lab.Fault, check func(*testing.T)) {
	t.Helper()
	f.Write("main.tf", config)
	_, _ = acctest.Interrupt(t, f.CLI, f.tap, fault) // the apply may survive a cut
	acctest.PutRight(t, f.CLI, check)
}

func (f faulty) apply(config string) {
	f.Write("main.tf", config)
	f.Must("apply", "-auto-approve", "-no-color")
}

func (f faulty) destroy() { f.Must("destroy", "-auto-approve", "-no-color") }

// runs fails the test when the machine is off, or differs from its persistent definition.
func (f faulty) runs(t *testing.T) {
	t.Helper()
	acctest.RunsAsStored(t, f.Host, f.name)
	f.is(t, "running")
}

func (f faulty) is(t *testing.T, state string) {
	t.Helper()
	if is := acctest.Must(f.Virsh(context.WithoutCancel(t.Context()), "domstate", f.name))(t); strings.TrimSpace(is) != state {
		t.Errorf("the machine is %s, not %s", strings.TrimSpace(is), state)
	}
}

// twin is one of two configurations: a running machine can be changed from one to the other and back, with all live changes.
func (f faulty) twin(n, vcpus int) string {
	name := []string{"one", "two"}[n]
	return f.disks("one", "two", "medium-one", "medium-two") + f.machine(machine{
		memory: []string{"128Mi", "160Mi"}[n],
		disks:  []string{cdrom("drive", "virtclaim_disk.medium-"+name), name + " = { volume = virtclaim_disk." + name + ".volume }"},
		more: fmt.Sprintf(`
  max_memory  = "192Mi"
  cpu         = { vcpus = %[1]d, max_vcpus = %[2]d }
  title       = "the %[3]s"
  description = "is %[3]s"
  autostart   = %[4]t
  interfaces  = { lan = { network = %[5]q, link = %[6]q }, %[3]s = { user = true } }`,
			vcpus, 1+len(ways), name, n == 0, []string{"red", "blue"}[n], []string{"up", "down"}[n]),
	})
}

// testLiveFaults changes one guest that runs throughout.
func testLiveFaults(t *testing.T, f faulty) {
	t.Helper()
	f.apply(f.twin(0, 1))
	defer f.destroy()
	f.console.Await(t, "READY")
	n, vcpus := 0, 1
	for _, fault := range acctest.Points(map[lab.Call]int{
		lab.CallSetAutostart: 1, lab.CallAttach: 2, lab.CallDetach: 2, lab.CallUpdateDevice: 3, lab.CallSetVCPUs: 1, lab.CallSetMemory: 1,
		lab.CallSetMetadata: 3, lab.CallDefine: 2,
	}, ways) {
		t.Run(fault.String(), func(t *testing.T) {
			n = 1 - n
			if fault.Call == lab.CallSetVCPUs {
				vcpus++ // an emulated guest can't release a processor
			}
			f.Write("main.tf", f.twin(n, vcpus))
			_, _ = acctest.Interrupt(t, f.CLI, f.tap, fault)
			if fault.Refuse && fault.Call != lab.CallDetach && fault.Call != lab.CallDefine {
				f.runs(t) // both or neither have changed; an acknowledged unplug is not reverted
			}
			acctest.PutRight(t, f.CLI, f.runs)
		})
	}
	said := acctest.Must(f.Shell(t.Context(), f.name, "disks; cdroms; nics"))(t)
	if boots := f.console.Boots(); boots != 1 || len(strings.Fields(said)) != 4 {
		t.Errorf("the guest has booted %d times, and sees: %s", boots, said)
	}
}

// testPowerFaults shuts one guest down and starts it, by configuration and for changes that need a restart.
func testPowerFaults(t *testing.T, f faulty) {
	t.Helper()
	cmdline, boots := "change-0", 0
	config := func(running bool) string {
		return f.machine(machine{cmdline: cmdline, more: fmt.Sprintf("allow_restart = true\n  running = %t", running)})
	}
	booted := func(t *testing.T) {
		t.Helper()
		f.runs(t)
		boots++
		f.console.AwaitN(t, "READY", boots)
		if now := f.console.Boots(); now != boots {
			t.Errorf("the guest has booted %d times, not %d", now, boots)
		}
		acctest.Contains(t, acctest.Must(f.Virsh(t.Context(), "dumpxml", f.name))(t), cmdline)
	}
	off := func(t *testing.T) { t.Helper(); f.is(t, "shut off") }
	f.apply(config(true))
	defer f.destroy()
	booted(t)
	for _, way := range ways {
		way.Nth = 1
		way.Call = lab.CallShutdown
		t.Run("stop/"+way.String(), func(t *testing.T) { f.interrupt(t, config(false), way, off) })
		way.Call = lab.CallDomainCreate
		t.Run("start/"+way.String(), func(t *testing.T) { f.interrupt(t, config(true), way, booted) })
		cmdline = fmt.Sprintf("change-%d", boots)
		t.Run("restart/"+way.String(), func(t *testing.T) { f.interrupt(t, config(true), way, booted) })
	}
	// The persistent definition is newer than the running domain, so that the next apply has a change.
	for _, fault := range []lab.Fault{{Call: lab.CallDefine, After: true, Kill: true}, {Call: lab.CallShutdown, Refuse: true}} {
		fault.Nth, cmdline = 1, "stored-by-"+fault.String()
		t.Run("restart/"+fault.String(), func(t *testing.T) { f.interrupt(t, config(true), fault, booted) })
	}
}

// testLifeFaults creates and destroys machines, with the state that hosts keep of them beside their disks.
func testLifeFaults(t *testing.T, f faulty) {
	t.Helper()
	// Marked as finished, and not in the state: no apply adopts it after that, but it can be imported.
	unknown := lab.Fault{Call: lab.CallDefine, Nth: 2, After: true, Kill: true}
	ends := acctest.Points(map[lab.Call]int{lab.CallDestroy: 1, lab.CallUndefine: 1}, ways)
	without := f.disks("data")
	with := without + f.machine(machine{
		machineType: "q35", disks: []string{"data = { volume = virtclaim_disk.data.volume }"}, more: `
  autostart  = true
  firmware   = { type = "efi" }
  tpm        = {}
  interfaces = { lan = { network = "red" } }
  force_stop = true`,
	})
	f.apply(without)
	defer f.destroy()
	for n, fault := range acctest.Points(map[lab.Call]int{lab.CallDefine: 2, lab.CallSetAutostart: 1, lab.CallDomainCreate: 1}, ways) {
		end := ends[n%len(ends)]
		t.Run(fault.String()+"/"+end.String(), func(t *testing.T) {
			f.Write("main.tf", with)
			_, _ = acctest.Interrupt(t, f.CLI, f.tap, fault)
			if fault == unknown {
				out, err := f.Run("apply", "-auto-approve", "-no-color")
				if err == nil || !message("is there already, and was left alone", "terraform import").MatchString(out) {
					t.Errorf("the next apply took over what was done: %v\n%s", err, out)
				}
				f.Must("import", "virtclaim_virtual_machine."+f.name, f.Name+"/"+f.name)
			}
			acctest.PutRight(t, f.CLI, f.runs)
			acctest.Must(f.Virsh(t.Context(), "suspend", f.name))(t) // its firmware would ignore its power button
			f.interrupt(t, without, end, nil)
			if left := acctest.Must(f.Virsh(t.Context(), "list", "--all", "--name"))(t); strings.Contains(left, f.name) {
				t.Errorf("the machine is still there: %s", left)
			}
		})
	}
}
