//go:build acc

package virtualmachine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// mover is a machine that is moved between two hosts, to each of which its provider is connected through a tap.
type mover struct {
	acctest.CLI
	lab     *lab.Lab
	taps    map[string]*lab.Tap
	binding string
	// attributes are those of a disk root of the machine's host; empty without one.
	attributes string
	machine    machine
	// host is where the machine is.
	host string
}

func newMover(t *testing.T, name string, more string) (*mover, lab.LUN) {
	t.Helper()
	l := acctest.Lab(t)
	m := &mover{lab: l, host: "host-a"}
	m.CLI, m.taps = acctest.TappedHosts(t, l, name)
	lun := acctest.LUN(t, l, false, "")
	acctest.Claim(t, l, name, name, lun)
	m.binding = claimBinding(name, name, "write-exclusive", "host-a", "host-b")
	m.machine = machine{
		name: name, log: acctest.NewConsole(t).Path(), disks: []string{disk("data", name, "virtio")}, more: more,
		cmdline: lab.WriteRecords("vda"),
	}
	return m, lun
}

func (m *mover) config(host string) {
	m.machine.host = host
	config := m.binding
	if m.machine.name != "" {
		config += m.machine.hcl(m.lab)
	}
	if m.attributes != "" {
		config += diskOn(host, "root", m.attributes)
	}
	m.Write("main.tf", config)
}

func (m *mover) other() string {
	return map[string]string{"host-a": "host-b", "host-b": "host-a"}[m.host]
}

// peerToPeer has the hosts' libvirtds migrate to each other.
func (m *mover) peerToPeer(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.Dir, "provider.tf"))
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for key, h := range m.lab.Hosts {
		config = strings.Replace(config, key+" = {", fmt.Sprintf("%s = { migration_uri = %q,", key, lab.MigrationURI(h.URI)), 1)
	}
	m.Write("provider.tf", config)
}

// The calls of a move, on the host that a machine leaves and on the one that it gets to. The definitions are the record of the move on both,
// and the end of the record.
var (
	liveLeaves = map[lab.Call]int{
		lab.CallDefine: 1, lab.CallSetAutostart: 1, lab.CallMigrateBegin: 1, lab.CallMigratePerform: 1, lab.CallMigrateConfirm: 1,
	}
	peersLeave = map[lab.Call]int{lab.CallDefine: 1, lab.CallSetAutostart: 1, lab.CallMigratePerform: 1}
	peersCome  = map[lab.Call]int{lab.CallDefine: 2, lab.CallSetAutostart: 1}
	liveComes  = map[lab.Call]int{
		lab.CallDefine: 2, lab.CallMigratePrepare: 1, lab.CallMigrateFinish: 1, lab.CallSetAutostart: 1,
	}
	offLeaves = map[lab.Call]int{lab.CallDefine: 1, lab.CallUndefine: 1, lab.CallSetAutostart: 1, lab.CallPoolCreateXML: 2, lab.CallVolumeDownload: 2}
	offComes  = map[lab.Call]int{
		lab.CallDefine: 3, lab.CallPoolCreateXML: 2, lab.CallVolumeCreate: 2, lab.CallVolumeUpload: 2, lab.CallSetAutostart: 1,
	}
)

// A migration that is refused, cut or killed at each of its calls leaves the guest on one host, where it goes on, at the latest with the next
// apply, which completes the move. It never runs twice, and nothing is left.
func TestAccVirtualMachine_MoveFaults(t *testing.T) {
	m, lun := newMover(t, "movefaults", "autostart = true")
	stored := acctest.InFile(t, lun.Path)
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	m.testFaults(t, "leaves", liveLeaves, stored)
	m.testFaults(t, "comes", liveComes, stored)
	m.peerToPeer(t)
	m.testFaults(t, "leaves peer to peer", peersLeave, stored)
	m.testFaults(t, "comes peer to peer", peersCome, stored)
	m.testKilledBetweenPeers(t, stored)
	m.Must("destroy", "-auto-approve", "-no-color")
}

func (m *mover) testFaults(t *testing.T, side string, calls map[lab.Call]int, stored func(int64, int) string) {
	t.Helper()
	leaves := strings.HasPrefix(side, "leaves")
	for _, fault := range acctest.Points(calls, ways) {
		t.Run(side+"/"+fault.String(), func(t *testing.T) {
			from, to := m.host, m.other()
			defer func() { m.host = to }()
			m.config(to)
			tap := m.taps[to]
			if leaves {
				tap = m.taps[from]
			}
			out, err := acctest.Interrupt(t, m.CLI, tap, fault)
			// What is refused once the guest has come is tried once more.
			isLate := fault.Call == lab.CallMigrateConfirm || !leaves && (fault.Call == lab.CallSetAutostart || fault.Nth > 1)
			if err == nil && fault.Refuse && !isLate {
				t.Errorf("what was refused succeeded:\n%s", out)
			}
			m.runsOnce(t)
			acctest.PutRight(t, m.CLI, m.is(to, "running"))
			acctest.AwaitRecords(t, stored, 2)
		})
	}
}

// testKilledBetweenPeers kills the provider in the middle of a migration, which goes on without it; the next apply waits for it.
func (m *mover) testKilledBetweenPeers(t *testing.T, stored func(int64, int) string) {
	t.Helper()
	more, from, to := m.machine.more, m.host, m.other()
	m.machine.more += "\n migration = { bandwidth = 4 }"
	m.config(to)
	cmd, output := m.Start("apply", "-auto-approve", "-no-color")
	m.awaitCopy(t, from)
	if err := acctest.KillProvider(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the provider was killed, but the apply succeeded:\n%s", output())
	}
	acctest.PutRight(t, m.CLI, m.is(to, "running"))
	acctest.AwaitRecords(t, stored, 2)
	m.machine.more, m.host = more, to
}

// awaitCopy waits until the memory of the machine's guest is being copied.
func (m *mover) awaitCopy(t *testing.T, from string) {
	t.Helper()
	acctest.Eventually(t, "the guest's memory is being copied", func() error {
		out, err := m.lab.Hosts[from].Virsh(t.Context(), "domjobinfo", m.machine.name)
		if err == nil && !strings.Contains(out, "Memory processed") {
			err = errors.New(out)
		}
		return err
	})
}

// is checks that the machine is on that host alone, in that state.
func (m *mover) is(host, state string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		isOnly(t, m.lab, m.machine.name, host, state)
	}
}

// runsOnce fails the test if the machine runs on both hosts.
func (m *mover) runsOnce(t *testing.T) {
	t.Helper()
	if m.machine.name == "" {
		return
	}
	var on []string
	for _, key := range []string{"host-a", "host-b"} {
		if out, err := m.lab.Hosts[key].Virsh(context.WithoutCancel(t.Context()), "domstate", m.machine.name); err == nil &&
			strings.TrimSpace(out) == "running" {
			on = append(on, key)
		}
	}
	if len(on) > 1 {
		t.Errorf("the guest runs on %s", on)
	}
}

// So does the move of a machine that is off, with its firmware's variables and its TPM.
func TestAccVirtualMachine_MoveFaultsOff(t *testing.T) {
	m, _ := newMover(t, "moveoff", `
  autostart  = true
  firmware   = { type = "efi" }
  tpm        = {}
  force_stop = true`)
	m.machine.machineType = "q35"
	more := m.machine.more
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.ConsoleAt(m.machine.log).Await(t, "UEFI Interactive Shell")
	m.machine.more = more + "\n  running = false"
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	state := stateOf(t, m.lab.Hosts[m.host], m.machine.name)
	if len(state) != 2 {
		t.Fatalf("the machine should have variables and a TPM: %q", state)
	}
	for _, side := range []struct {
		name  string
		calls map[lab.Call]int
	}{{"leaves", offLeaves}, {"comes", offComes}} {
		for _, fault := range acctest.Points(side.calls, ways) {
			t.Run(side.name+"/"+fault.String(), func(t *testing.T) {
				from, to := m.host, m.other()
				defer func() { m.host = to }()
				m.config(to)
				_, _ = acctest.Interrupt(t, m.CLI, m.taps[map[string]string{"leaves": from, "comes": to}[side.name]], fault)
				acctest.PutRight(t, m.CLI, m.is(to, "shut off"))
				if now := stateOf(t, m.lab.Hosts[to], m.machine.name); !slices.Equal(now, state) {
					t.Errorf("the state of the machine was %q, and is %q", state, now)
				}
				if left := stateOf(t, m.lab.Hosts[from], m.machine.name); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
			})
		}
	}
	m.Must("destroy", "-auto-approve", "-no-color")
}

// A killed move is put back by an apply with the former host, and a machine whose move was killed can be destroyed.
func TestAccVirtualMachine_MoveGivenUp(t *testing.T) {
	m, lun := newMover(t, "movegivenup", "autostart = true")
	stored := acctest.InFile(t, lun.Path)
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	for _, fault := range []lab.Fault{
		{Call: lab.CallDefine, Nth: 1},
		{Call: lab.CallMigratePrepare, Nth: 1},
		{Call: lab.CallMigrateFinish, Nth: 1},
		{Call: lab.CallMigrateFinish, Nth: 1, After: true},
	} {
		fault.Kill = true
		t.Run(fault.String(), func(t *testing.T) {
			acctest.AwaitRecords(t, stored, 2)
			m.config("host-b")
			_, _ = acctest.Interrupt(t, m.CLI, m.taps["host-b"], fault)
			m.config("host-a")
			acctest.PutRight(t, m.CLI, m.is("host-a", "running"))
		})
	}
	m.config("host-b")
	_, _ = acctest.Interrupt(t, m.CLI, m.taps["host-b"], lab.Fault{Call: lab.CallMigrateFinish, Nth: 1, Kill: true})
	m.Must("destroy", "-auto-approve", "-no-color")
	for _, key := range []string{"host-a", "host-b"} {
		if all := acctest.Must(m.lab.Hosts[key].Virsh(t.Context(), "list", "--all", "--name"))(t); strings.Contains(all, m.machine.name) {
			t.Errorf("%s still has the machine", key)
		}
	}
}

// Of two applies that move one machine to two hosts, one wins; the other one changes nothing.
func TestAccVirtualMachine_MoveRivals(t *testing.T) {
	m, _ := newMover(t, "moverivals", "running = false")
	e := acctest.Must(m.lab.NetworkedHost(t.Context()))(t)
	m.binding = claimBinding("moverivals", "moverivals", "write-exclusive", "host-a", "host-b", e.Name)
	provider := acctest.Provider(m.lab, "moverivals")
	provider = strings.Replace(provider, "hosts = {", fmt.Sprintf("hosts = {\n    %s = { uri = %q }", e.Name, e.URI), 1)
	m.Write("provider.tf", strings.Replace(provider, m.lab.Hosts["host-b"].URI, m.taps["host-b"].URI, 1))
	m.config("host-a")
	m.Must("apply", "-auto-approve", "-no-color")
	rival := acctest.NewCLI(t)
	rival.Write("provider.tf", provider)
	rival.Write("main.tf", strings.Replace(m.binding+m.machine.hcl(m.lab), `host    = "host-a"`, fmt.Sprintf("host    = %q", e.Name), 1))
	rival.Write("terraform.tfstate", m.Must("state", "pull"))

	m.taps["host-b"].Arm(lab.Fault{Call: lab.CallDefine, Nth: 1, After: true, Hold: true})
	m.config("host-b")
	held, output := m.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the move to host-b has been announced", func() error {
		if !m.taps["host-b"].Fired() {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	other, rivalOutput := rival.Start("apply", "-auto-approve", "-no-color")
	acctest.Eventually(t, "the rival has announced its move", func() error {
		_, err := e.Virsh(t.Context(), "dominfo", "moverivals")
		return err
	})
	m.taps["host-b"].Release()
	if err := held.Wait(); err == nil || !strings.Contains(output(), "another apply moves it at the same time") {
		t.Errorf("%v:\n%s", err, output())
	}
	if err := other.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, rivalOutput())
	}
	for _, key := range []string{"host-a", "host-b"} {
		if all := acctest.Must(m.lab.Hosts[key].Virsh(t.Context(), "list", "--all", "--name"))(t); strings.Contains(all, "moverivals") {
			t.Errorf("%s still has the machine", key)
		}
	}
	acctest.Contains(t, rival.Must("plan", "-no-color"), "No changes.")
	rival.Must("destroy", "-auto-approve", "-no-color")
}

// A migration that is broken off in its middle, by its time, by Ctrl-C, by the end of either libvirtd or of the target's QEMU, leaves the
// guest where it was; the next apply moves it. With post-copy it is moved when its time is over.
func TestAccVirtualMachine_MoveBrokenOff(t *testing.T) {
	m, lun := newMover(t, "movebroken", "")
	stored := acctest.InFile(t, lun.Path)
	m.config(m.host)
	m.Must("apply", "-auto-approve", "-no-color")
	acctest.AwaitRecords(t, stored, 2)
	restart := func(t *testing.T, h *lab.Host) {
		t.Helper()
		if err := h.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		more, says string
		midway     func(t *testing.T, from, to *lab.Host, apply *os.Process)
	}{
		"timeout": {`timeout = "2s"`, "was not copied in time", nil},
		"ctrl-c": {"", "", func(t *testing.T, _, _ *lab.Host, apply *os.Process) {
			t.Helper()
			if err := apply.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}},
		"source": {"", "", func(t *testing.T, from, _ *lab.Host, _ *os.Process) { t.Helper(); restart(t, from) }},
		"target": {"", "", func(t *testing.T, _, to *lab.Host, _ *os.Process) { t.Helper(); restart(t, to) }},
		"memory": {"", "", func(t *testing.T, _, to *lab.Host, _ *os.Process) {
			t.Helper()
			acctest.Must(to.Run(t.Context(), "pkill -KILL -f guest="+m.machine.name))(t) // as the kernel does that has none
		}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := m.host, m.other()
			m.machine.more = "migration = {\n bandwidth = 1\n" + c.more + "\n}"
			m.config(to)
			cmd, output := m.Start("apply", "-auto-approve", "-no-color")
			if c.midway != nil {
				m.awaitCopy(t, from)
				c.midway(t, m.lab.Hosts[from], m.lab.Hosts[to], cmd.Process)
			}
			if err := cmd.Wait(); err == nil || !strings.Contains(output(), c.says) {
				t.Errorf("%v:\n%s", err, output())
			}
			isOnly(t, m.lab, m.machine.name, from, "running")
			acctest.AwaitRecords(t, stored, 2)
			m.machine.more = ""
			m.config(to)
			acctest.PutRight(t, m.CLI, m.is(to, "running"))
			m.host = to
			acctest.AwaitRecords(t, stored, 2)
		})
	}
	m.machine.more = "migration = {\n bandwidth = 1\n timeout = \"2s\"\n postcopy = true\n}"
	m.config(m.other())
	m.Must("apply", "-auto-approve", "-no-color")
	isOnly(t, m.lab, m.machine.name, m.other(), "running")
	acctest.AwaitRecords(t, stored, 2)
	m.Must("destroy", "-auto-approve", "-no-color")
}
