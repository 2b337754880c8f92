//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// unit binds a logical unit of the lab directly: without a claim, no reservation separates two configurations.
func unit(l *lab.Lab, lun lab.LUN, mode string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name        = "data"
  hosts       = ["host-a", "host-b"]
  access_mode = %q
  source      = { iscsi = { portal = %q, iqn = %q, lun = %d } }
}
`, mode, l.Target.Portal, lun.IQN, lun.Number)
}

func TestAccGuard_TwoMachinesOfOneConfiguration(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "one writer")
	acctest.Claim(t, l, "guard", "data", lun)
	config := acctest.Provider(l, "guard") + claimBinding("guard", "data", "write-exclusive", "host-a", "host-b")
	console := acctest.NewConsole(t)
	for name, host := range map[string]string{"one": "host-a", "two": "host-b"} {
		config += machine{name: name, host: host, disks: []string{disk("data", "data", "virtio")}, log: console.Path()}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config:      config,
			ExpectError: message("Two machines on the same storage", "of this configuration uses, too"),
		}},
	})
}

// unmanagedDomain is a domain that virtclaim did not create.
func unmanagedDomain(l *lab.Lab, lun lab.LUN, more string) string {
	return fmt.Sprintf(`<domain type='qemu'>
  <name>theirs</name><memory unit='MiB'>64</memory><os><type>hvm</type></os>
  <devices>
    <disk type='network' device='disk'>
      <driver name='qemu' type='raw'/>
      <source protocol='iscsi' name='%s/%d'><host name='%s' port='%s'/></source>
      <target dev='vda' bus='virtio'/>%s
    </disk>
  </devices>
</domain>`, strings.ToUpper(lun.IQN), lun.Number, strings.Split(l.Target.Portal, ":")[0], strings.Split(l.Target.Portal, ":")[1], more)
}

// A domain that virtclaim did not create counts, whether it runs or not, on any of the binding's hosts.
func TestAccGuard_ForeignDomainsCount(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "theirs")
	theirs := func(xml string) func() {
		return func() {
			if err := l.Hosts["host-b"].DefineXML(t.Context(), xml); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func() {
		if _, err := l.Hosts["host-b"].Virsh(context.Background(), "undefine", "theirs"); err != nil {
			t.Fatal(err)
		}
	}
	config := func(mode string) string {
		return acctest.Provider(l, "guard") + unit(l, lun, mode) +
			machine{disks: []string{disk("data", "data", "virtio")}, idle: true}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			PreConfig:   theirs(unmanagedDomain(l, lun, "")),
			Config:      config("write-exclusive"),
			ExpectError: message("machine web on host host-a can't use", "domain theirs on host host-b has it as its disk vda", "virsh detach-disk theirs vda"),
		}, {
			Config:      config("read-shared"),
			ExpectError: message("(read-shared): domain theirs on host host-b has it as its disk vda (write-exclusive)"),
		}, {
			PreConfig: func() { gone(); theirs(unmanagedDomain(l, lun, "<readonly/>"))() },
			Config:    config("read-shared"),
			Check: func(*terraform.State) error {
				acctest.Contains(t, devices(t, l, "data"), lun.IQN, "<readonly/>")
				running(t, l.Hosts["host-a"])
				suspended(t, l.Hosts["host-a"])
				gone()
				return nil
			},
		}},
	})
}

// Applies of different owners, each in its own process, need the same storage, which no claim protects: two machines never run with it at
// once, and one does in the end.
func TestAccGuard_ConcurrentAppliesHaveOneWinner(t *testing.T) {
	const many = 6
	l := acctest.Lab(t)
	store := acctest.Stores["nbd"](t, l)
	console := acctest.NewConsole(t)
	var group sync.WaitGroup
	applies, outputs, failed := make([]acctest.CLI, many), make([]string, many), make([]error, many)
	for n := range many {
		applies[n] = acctest.NewCLI(t)
		applies[n].Write("main.tf", acctest.Provider(l, fmt.Sprintf("owner-%d", n))+bound(store.Source, "write-exclusive", "host-a", "host-b")+machine{
			name: fmt.Sprintf("m%d", n), host: []string{"host-a", "host-b"}[n%2],
			disks: []string{disk("data", "data", "virtio")}, log: console.Path(),
		}.hcl(l))
		group.Go(func() { outputs[n], failed[n] = applies[n].Run("apply", "-auto-approve", "-no-color") })
	}
	group.Wait()
	winners := 0
	for n := range many {
		if failed[n] == nil {
			winners++
			continue
		}
		if !message("it is in use: machine", "can't use", "domain m", "as its disk data").MatchString(outputs[n]) {
			t.Errorf("a loser was told:\n%s", outputs[n])
		}
	}
	if boots := console.Boots(); winners != 1 || boots > 1 {
		t.Errorf("%d machines run, and %d guests booted", winners, boots)
	}
	for _, cli := range applies {
		cli.Must("destroy", "-auto-approve")
	}
}

// Terraform destroys one machine while it creates the other: the new one waits.
func TestAccGuard_VolumeMovesBetweenHosts(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "moves")
	acctest.Claim(t, l, "guard", "data", lun)
	config := func(name, host string, c acctest.Console) string {
		return acctest.Provider(l, "guard") + claimBinding("guard", "data", "write-exclusive", "host-a", "host-b") +
			machine{name: name, host: host, disks: []string{disk("data", "data", "virtio")}, log: c.Path(), more: "force_stop = true"}.hcl(l)
	}
	first, second := acctest.NewConsole(t), acctest.NewConsole(t)
	reads := func(c acctest.Console) resource.TestCheckFunc {
		return func(*terraform.State) error {
			c.Await(t, "READY")
			acctest.Contains(t, c.Await(t, "DISK vda "), "first=moves")
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("one", "host-a", first), Check: reads(first)},
			{Config: config("two", "host-b", second), Check: reads(second)},
		},
	})
}

// A guest that was saved with its memory resumes with the disks that it had: no other machine gets those in between, even if its persistent
// definition no longer has them, and its disks can't be changed.
func TestAccGuard_SavedGuestKeepsDisks(t *testing.T) {
	l := acctest.Lab(t)
	lun, more := acctest.LUN(t, l, false, "saved"), acctest.LUN(t, l, false, "more")
	console := acctest.NewConsole(t)
	virsh := func(args ...string) func() {
		return func() {
			if out, err := l.Hosts["host-a"].Virsh(t.Context(), args...); err != nil {
				t.Fatal(err, out)
			}
		}
	}
	config := func(disks ...string) string {
		return acctest.Provider(l, "saved") + unit(l, lun, "write-exclusive") +
			strings.ReplaceAll(unit(l, more, "write-exclusive"), `"data"`, `"more"`) +
			machine{disks: disks, log: console.Path()}.hcl(l)
	}
	data := disk("data", "data", "virtio")
	other := acctest.NewCLI(t)
	other.Write("main.tf", acctest.Provider(l, "other")+unit(l, lun, "write-exclusive")+machine{
		name: "other", host: "host-b", disks: []string{data}, log: acctest.NewConsole(t).Path(),
	}.hcl(l))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config(data),
			Check: func(*terraform.State) error {
				console.Await(t, "READY")
				virsh("managedsave", "web")()
				return nil
			},
			ExpectNonEmptyPlan: true, // it is off
		}, {
			Config:      config(data, disk("more", "more", "virtio")),
			ExpectError: message("its guest is saved with its memory", "disk more.", "virsh managedsave-remove web"),
		}, {
			PreConfig: func() {
				virsh("detach-disk", "web", "vda", "--config")()
				out, err := other.Run("apply", "-auto-approve", "-no-color")
				if err == nil || !message("domain web on host host-a was saved with it as its disk data").MatchString(out) {
					t.Errorf("another machine got the disk of a saved guest: %v\n%s", err, out)
				}
			},
			Config: config(data),
			Check: func(*terraform.State) error {
				other.Must("destroy", "-auto-approve")
				if boots := console.Boots(); boots != 1 {
					return fmt.Errorf("the guest did not go on, it booted %d times", boots)
				}
				return nil
			},
		}},
	})
}

// A configuration without an owner identifies its machines by the bindings and disks in their metadata: a disk that is destroyed in an
// apply is unplugged from the running machine first.
func TestAccGuard_WithoutOwner(t *testing.T) {
	l := acctest.Lab(t)
	store := acctest.Stores["nbd"](t, l)
	console := acctest.NewConsole(t)
	config := func(bindings string, disks ...string) string {
		return acctest.Provider(l, "") + bindings + machine{disks: disks, log: console.Path()}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config(bound(store.Source, "write-exclusive", "host-a"), disk("data", "data", "virtio")),
			Check: func(*terraform.State) error {
				console.Await(t, "READY")
				return nil
			},
		}, {
			Config: config(""),
			Check: func(*terraform.State) error {
				out, err := l.Hosts["host-a"].Virsh(t.Context(), "domblklist", "web")
				if err != nil || strings.Contains(out, "vda") || console.Boots() != 1 {
					return fmt.Errorf("the guest still has its disk, or was restarted: %w\n%s", err, out)
				}
				return nil
			},
		}},
	})
}

// A running machine gets another volume in its configuration that it may not have. The first one was unplugged before, and whether it is
// still free is not checked: so the machine runs without a disk until an apply that is allowed.
func TestAccGuard_RefusedVolumeLeavesNone(t *testing.T) {
	l := acctest.Lab(t)
	first, second := acctest.LUN(t, l, false, "first"), acctest.LUN(t, l, false, "second")
	console := acctest.NewConsole(t)
	virsh := func(key string, args ...string) string {
		t.Helper()
		out, err := l.Hosts[key].Virsh(context.Background(), args...)
		if err != nil {
			t.Fatal(err, out)
		}
		return out
	}
	config := func(lun lab.LUN) string {
		name := fmt.Sprintf("lun%d", lun.Number)
		return acctest.Provider(l, "guard") + strings.ReplaceAll(unit(l, lun, "write-exclusive"), `"data"`, `"`+name+`"`) +
			machine{disks: []string{disk("data", name, "virtio")}, log: console.Path()}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config(first),
			Check: func(*terraform.State) error {
				console.Await(t, "READY")
				return l.Hosts["host-b"].DefineXML(t.Context(), unmanagedDomain(l, second, ""))
			},
		}, {
			Config:      config(second),
			ExpectError: message("machine web on host host-a can't use", "domain theirs on host host-b has it as its disk vda"),
		}, {
			PreConfig: func() {
				for _, which := range [][]string{{"domblklist", "web"}, {"domblklist", "web", "--inactive"}} {
					if out := virsh("host-a", which...); strings.Contains(out, "vda") {
						t.Errorf("the machine has a disk that it did not ask for again:\n%s", out)
					}
				}
				virsh("host-b", "undefine", "theirs")
			},
			Config: config(second),
			Check: func(*terraform.State) error {
				acctest.Contains(t, virsh("host-a", "domblklist", "web"), "vda", second.IQN)
				return nil
			},
		}},
	})
}

// An apply that is killed before the guard's check leaves the disk in the persistent definition, visible to other machines. The next apply
// repeats the check, because another machine may have the disk by now.
func TestAccGuard_InterruptedAttachIsRetried(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "wanted")
	console := acctest.NewConsole(t)
	cli, tap := acctest.Tapped(t, l, "guard")
	config := func(disks ...string) string {
		return unit(l, lun, "write-exclusive") + machine{disks: disks, log: console.Path(), more: "running = false"}.hcl(l)
	}
	cli.Write("main.tf", config())
	cli.Must("apply", "-auto-approve")
	cli.Write("main.tf", config(disk("data", "data", "virtio")))
	tap.Arm(lab.Fault{Call: lab.CallDefine, Nth: 1, After: true, Kill: true})
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !tap.Fired() {
		t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
	}
	if err := l.Hosts["host-b"].DefineXML(t.Context(), unmanagedDomain(l, lun, "")); err != nil {
		t.Fatal(err)
	}
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("machine web on host host-a can't use", "domain theirs on host host-b has it").MatchString(out) {
		t.Errorf("it was not asked again: %v\n%s", err, out)
	}
	if _, err := l.Hosts["host-b"].Virsh(t.Context(), "undefine", "theirs"); err != nil {
		t.Fatal(err)
	}
	cli.Must("apply", "-auto-approve")
	if out := cli.Must("plan", "-no-color"); !message("No changes.").MatchString(out) {
		t.Errorf("the disk is not there:\n%s", out)
	}
	cli.Must("destroy", "-auto-approve")
}
