//go:build acc

package virtualmachine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A running machine whose disk is network storage of both hosts moves between them while its guest goes on.
func TestAccVirtualMachine_MovesLive(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	acctest.Claim(t, l, "moves", "data", lun)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "moves"))
	on := func(host, more string) {
		t.Helper()
		cli.Write("main.tf", claimBinding("moves", "data", "write-exclusive", "host-a", "host-b")+
			machine{host: host, log: console.Path(), disks: []string{disk("data", "data", "virtio")}, more: more}.hcl(l))
	}
	on("host-a", "autostart = true")
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	for _, way := range [][2]string{{"host-a", "host-b"}, {"host-b", "host-a"}} {
		on(way[1], "autostart = true")
		out := cli.Must("apply", "-auto-approve", "-no-color")
		acctest.Contains(t, out, "will be updated in-place", `"`+way[0]+`" -> "`+way[1]+`"`)
		acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
		isOnly(t, l, "web", way[1], "running")
	}
	if boots := console.Boots(); boots != 1 {
		t.Errorf("the guest has booted %d times", boots)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A machine that is off takes its firmware's variables and its TPM along, which libvirt would leave behind. So does one whose guest is shut
// down for the move.
func TestAccVirtualMachine_MovesOffline(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "moves"))
	on := func(host, more string) {
		t.Helper()
		cli.Write("main.tf", machine{host: host, log: console.Path(), machineType: "q35", more: more + `
  firmware   = { type = "efi" }
  tpm        = {}
  force_stop = true
  migration  = { mode = "offline" }`}.hcl(l))
		cli.Must("apply", "-auto-approve", "-no-color")
		acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	}
	const started = "UEFI Interactive Shell" // the firmware finds nothing else that it can start
	on("host-a", "")
	console.Await(t, started)
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "suspend", "web"))(t) // it would ignore its power button
	on("host-b", "")                                                        // shut down, moved, started
	isOnly(t, l, "web", "host-b", "running")
	console.AwaitN(t, started, 2)
	acctest.Must(l.Hosts["host-b"].Virsh(t.Context(), "suspend", "web"))(t)
	on("host-b", "running = false")
	before := stateOf(t, l.Hosts["host-b"], "web")
	if len(before) != 2 {
		t.Fatalf("the machine should have variables and a TPM: %q", before)
	}
	on("host-a", "running = false")
	isOnly(t, l, "web", "host-a", "shut off")
	if after := stateOf(t, l.Hosts["host-a"], "web"); !slices.Equal(after, before) {
		t.Errorf("the state of the machine was %q, and is %q", before, after)
	}
	if left := stateOf(t, l.Hosts["host-b"], "web"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	on("host-a", "running = true")
	console.AwaitN(t, started, 3)
	cli.Must("destroy", "-auto-approve", "-no-color")
	if left := slices.Concat(stateOf(t, l.Hosts["host-a"], "web"), stateOf(t, l.Hosts["host-b"], "web")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// stateOf are the digests and names of the files with a machine's firmware variables and its TPM.
func stateOf(t *testing.T, h *lab.Host, name string) []string {
	t.Helper()
	out := acctest.Must(h.Run(context.WithoutCancel(t.Context()), "cd /var/lib/libvirt && find qemu/nvram/"+name+"_VARS.fd swtpm "+
		"-type f ! -name '.*' -print0 2>/dev/null | sort -z | xargs -0r sha256sum || true"))(t)
	var all []string
	for line := range strings.Lines(out) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// A machine that others have migrated is found on its new host. The next apply accepts that, or moves it back; nothing is left of it on the
// other host.
func TestAccVirtualMachine_MovedByOthers(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "")
	acctest.Claim(t, l, "moved", "data", lun)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "moved"))
	on := func(host string) {
		t.Helper()
		cli.Write("main.tf", claimBinding("moved", "data", "write-exclusive", "host-a", "host-b")+
			machine{host: host, log: console.Path(), disks: []string{disk("data", "data", "virtio")}}.hcl(l))
	}
	on("host-a")
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	for name, c := range map[string]struct {
		flags        []string
		host, before string
		change       string
	}{
		"accepted, with its definition left":       {nil, "host-b", "host-a", "will be updated in-place"},
		"accepted, with nothing left":              {[]string{"--persistent", "--undefinesource"}, "host-a", "host-b", "No changes"},
		"moved back, with its definition left":     {nil, "host-a", "host-a", "will be updated in-place"},
		"moved back, with a definition on both":    {[]string{"--persistent"}, "host-a", "host-a", "will be updated in-place"},
		"moved back, without one on either":        {[]string{"--undefinesource"}, "host-a", "host-a", "will be updated in-place"},
		"accepted, with no definition left at all": {[]string{"--undefinesource"}, "host-b", "host-a", "will be updated in-place"},
	} {
		t.Run(name, func(t *testing.T) {
			on(c.before)
			cli.Must("apply", "-auto-approve", "-no-color")
			isOnly(t, l, "web", c.before, "running")
			other := map[string]string{"host-a": "host-b", "host-b": "host-a"}[c.before]
			acctest.Must(l.Hosts[c.before].Virsh(t.Context(), append([]string{"migrate", "--live", "web", l.Hosts[other].URI, "tcp://127.0.0.2"},
				c.flags...)...))(t)
			on(c.host)
			plan := cli.Must("plan", "-no-color")
			acctest.Contains(t, plan, "Machine web is on host "+other)
			acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), c.change)
			isOnly(t, l, "web", c.host, "running")
			acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
		})
	}
	if boots := console.Boots(); boots != 1 {
		t.Errorf("the guest has booted %d times", boots)
	}
	on("host-a")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "migrate", "--live", "web", l.Hosts["host-b"].URI, "tcp://127.0.0.2"))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// isOnly fails the test if a machine is not on that host in that state, or if the other one has anything of it.
func isOnly(t *testing.T, l *lab.Lab, name, key, state string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, other := range []string{"host-a", "host-b"} {
		h := l.Hosts[other]
		if other != key {
			if all := acctest.Must(h.Virsh(ctx, "list", "--all", "--name"))(t); strings.Contains(all, name) {
				t.Errorf("%s still has the machine: %s", other, acctest.Must(h.Virsh(ctx, "dominfo", name))(t))
			}
			continue
		}
		if is := strings.TrimSpace(acctest.Must(h.Virsh(ctx, "domstate", name))(t)); is != state {
			t.Errorf("on %s the machine is %s, not %s", other, is, state)
		}
		if stored := acctest.Must(h.Virsh(ctx, "dumpxml", "--inactive", name))(t); strings.Contains(stored, "moves-") {
			t.Errorf("the record of the move was left:\n%s", stored)
		}
	}
}
