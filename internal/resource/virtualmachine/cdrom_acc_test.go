//go:build acc

package virtualmachine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// cdrom is a drive with the volume of a resource as its medium.
func cdrom(key, of string) string {
	return fmt.Sprintf(`%s = { volume = %s.volume, device = "cdrom" }`, key, of)
}

// ask has the guest of the machine web run a command.
func ask(t *testing.T, l *lab.Lab, command string) string {
	t.Helper()
	return acctest.Must(l.Hosts["host-a"].Shell(context.Background(), "web", command))(t)
}

// drives checks the medium of the machine's drive, or that it has none, in the live and the persistent definition.
func drives(t *testing.T, l *lab.Lab, target, medium string) {
	t.Helper()
	for _, which := range [][]string{{"domblklist", "web"}, {"domblklist", "web", "--inactive"}} {
		out, err := l.Hosts["host-a"].Virsh(context.Background(), which...)
		if err != nil {
			t.Error(err)
		}
		found := false
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			found = found || len(fields) == 2 && fields[0] == target && strings.HasSuffix(fields[1], medium)
		}
		if !found {
			t.Errorf("%v: %s has not %s:\n%s", which, target, medium, out)
		}
	}
}

// A medium changes under the running guest, from one kind of storage to another, while the binding of the old one is destroyed; and it is
// removed with its drive, which stays until the machine is restarted.
func TestAccVirtualMachine_MediumChangesLive(t *testing.T) {
	l := acctest.Lab(t)
	file := bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a", "host-b")
	lun := acctest.LUN(t, l, true, "the second medium")
	acctest.Claim(t, l, "media", "second", lun)
	claim := claimBinding("media", "second", "write-exclusive", "host-a")
	console := acctest.NewConsole(t)
	config := func(bindings string, disks ...string) string {
		return acctest.Provider(l, "media") + bindings + machine{disks: disks, log: console.Path()}.hcl(l)
	}
	imported := resource.TestStep{ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(file, cdrom("seed", "virtclaim_volume_binding.data")),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(web, "disks.seed.bus", "ide"), sees(t, l, console, acctest.Known, "hda", "data.raw")),
			},
			imported,
			{
				Config:           config(claim, cdrom("seed", "virtclaim_volume_binding.second")),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            sees(t, l, console, "the second medium", "hda", fmt.Sprintf("%s/%d", lun.IQN, lun.Number)),
			},
			imported,
			{
				Config:           config(""),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: func(*terraform.State) error {
					live, err := l.Hosts["host-a"].Virsh(context.Background(), "domblklist", "web")
					stored, err2 := l.Hosts["host-a"].Virsh(context.Background(), "domblklist", "web", "--inactive")
					if err := errors.Join(err, err2); err != nil || strings.Contains(live, lun.IQN) || strings.Contains(stored, "hda") {
						return fmt.Errorf("the guest still has the medium, or its next start the drive: %w\n%s\n%s", err, live, stored)
					}
					return nil
				},
			},
		},
	})
}

// sees checks that the guest, which has booted once and can't write there, reads a medium, and that its drive has it.
func sees(t *testing.T, l *lab.Lab, console acctest.Console, content, target, medium string) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		console.Await(t, "READY")
		drives(t, l, target, medium)
		acctest.Contains(t, ask(t, l, "report_cdrom sr0; head -c 32 /dev/sr0 | tr -d '\\0'; echo"), "ro=1", content)
		if boots := console.Boots(); boots != 1 {
			return fmt.Errorf("the guest has booted %d times", boots)
		}
		return nil
	}
}

// Terraform destroys the old medium before it creates the new one, here even under the same path: the drive is emptied in between.
func TestAccVirtualMachine_ReplacedDiskIsNewMedium(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "media", "first", acctest.LUN(t, l, false, "the first medium"))
	acctest.Claim(t, l, "media", "second", acctest.LUN(t, l, false, "the second medium"))
	console := acctest.NewConsole(t)
	config := func(master string) string {
		return acctest.Provider(l, "media") + claimBinding("media", "first", "read-shared", "host-a") + claimBinding("media", "second", "read-shared", "host-a") +
			copyOf(master, "copy-on-write", "copy-on-write") +
			machine{machineType: "q35", disks: []string{cdrom("seed", "virtclaim_disk.copy-on-write")}, log: console.Path()}.hcl(l)
	}
	reads := func(medium string) resource.TestCheckFunc {
		return sees(t, l, console, medium, "sda", "/copy-on-write")
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config("first"),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(web, "disks.seed.bus", "sata"), reads("the first medium")),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true},
			{
				Config: config("second"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(web, plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction("virtclaim_disk.copy-on-write", plancheck.ResourceActionDestroyBeforeCreate),
				}},
				Check: reads("the second medium"),
			},
			{
				// A medium that was ejected manually is inserted again.
				PreConfig: func() {
					if out, err := l.Hosts["host-a"].Virsh(t.Context(), "change-media", "web", "sda", "--eject", "--live"); err != nil {
						t.Fatal(err, out)
					}
				},
				Config:           config("second"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            reads("the second medium"),
			},
		},
	})
}

// A guest that uses its medium keeps it, and the medium is not destroyed, until the guest has unlocked the tray. If only its persistent
// definition has another medium, that is corrected without the guest.
func TestAccVirtualMachine_LockedTray(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	source := bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a", "host-b")
	config := func(bindings string, disks ...string) string {
		return acctest.Provider(l, "media") + bindings + machine{disks: disks, log: console.Path()}.hcl(l)
	}
	seed := cdrom("seed", "virtclaim_volume_binding.data")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(source, seed),
				Check: func(*terraform.State) error {
					console.Await(t, "READY")
					ask(t, l, "sleep 999 </dev/sr0 & echo $! >/reader; usleep 100000")
					return nil
				},
			},
			{
				Config:      config(source),
				ExpectError: message("disk seed: ", "the guest has locked the drive's tray", "Unmount it in the guest"),
			},
			{
				PreConfig: func() {
					drives(t, l, "hda", "data.raw")
					other := []string{"change-media", "web", "hda", "/elsewhere.iso", "--update", "--config"}
					if out, err := l.Hosts["host-a"].Virsh(t.Context(), other...); err != nil {
						t.Fatal(err, out)
					}
				},
				Config:           config(source, seed),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			},
			{
				PreConfig: func() {
					drives(t, l, "hda", "data.raw")
					ask(t, l, "kill $(cat /reader)")
				},
				Config: config(source),
			},
		},
	})
}

// An apply that is killed while it changes a medium leaves a drive that the next one corrects.
func TestAccVirtualMachine_InterruptedMediumIsInserted(t *testing.T) {
	const callUpdateDevice lab.Call = 174
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli, tap := acctest.Tapped(t, l, "media")
	bindings := bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a") +
		strings.ReplaceAll(bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a"), `"data"`, `"other"`)
	config := func(binding string) string {
		hcl := machine{disks: []string{cdrom("seed", "virtclaim_volume_binding."+binding)}, log: console.Path()}.hcl(l)
		return bindings + strings.Replace(hcl, `type = "pc", `, "", 1) // libvirt chooses the same
	}
	cli.Write("main.tf", config("data"))
	cli.Must("apply", "-auto-approve")
	for n, fault := range []lab.Fault{
		{Call: callUpdateDevice, Nth: 1, After: true, Kill: true}, // ejected
		{Call: callUpdateDevice, Nth: 2, Kill: true},              // stored, and not yet inserted
		{Call: callUpdateDevice, Nth: 2, After: true, Kill: true}, // inserted
	} {
		cli.Write("main.tf", config([]string{"other", "data"}[n%2]))
		tap.Arm(fault)
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !tap.Fired() {
			t.Fatalf("%v: the apply was not interrupted: %v\n%s", fault, err, out)
		}
		cli.Must("apply", "-auto-approve")
		drives(t, l, "hda", "data.raw")
		if out := cli.Must("plan", "-no-color"); !message("No changes.").MatchString(out) {
			t.Errorf("%v: the medium is not there:\n%s", fault, out)
		}
	}
	cli.Must("destroy", "-auto-approve")
}

// A medium that the machine may not have leaves its drive empty: the old one was ejected before, and whether it is still free is not
// checked.
func TestAccVirtualMachine_RefusedMediumLeavesEmptyDrive(t *testing.T) {
	l := acctest.Lab(t)
	first, second := acctest.LUN(t, l, false, "first"), acctest.LUN(t, l, false, "second")
	console := acctest.NewConsole(t)
	config := func(lun lab.LUN) string {
		name := fmt.Sprintf("lun%d", lun.Number)
		return acctest.Provider(l, "media") + strings.ReplaceAll(unit(l, lun, "write-exclusive"), `"data"`, `"`+name+`"`) +
			machine{disks: []string{cdrom("seed", "virtclaim_volume_binding."+name)}, log: console.Path()}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(first),
				Check: func(*terraform.State) error {
					return l.Hosts["host-b"].DefineXML(t.Context(), unmanagedDomain(l, second, ""))
				},
			},
			{
				Config:      config(second),
				ExpectError: message("machine web on host host-a can't use", "domain theirs on host host-b has it as its disk vda"),
			},
			{
				PreConfig: func() {
					drives(t, l, "hda", "-")
					if out, err := l.Hosts["host-b"].Virsh(t.Context(), "undefine", "theirs"); err != nil {
						t.Fatal(err, out)
					}
				},
				Config: config(second),
				Check:  sees(t, l, console, "second", "hda", fmt.Sprintf("%s/%d", second.IQN, second.Number)),
			},
		},
	})
}

// A drive that is removed stays in the running guest, empty and with its target, and blocks nothing there: neither a disk that is plugged
// in together with its removal, nor one under its own key, which is pending for the next start.
func TestAccVirtualMachine_RemovedDriveBlocksNothing(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	lun := acctest.LUN(t, l, false, "a disk")
	config := func(disks ...string) string {
		return acctest.Provider(l, "media") + bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a", "host-b") +
			strings.ReplaceAll(unit(l, lun, "write-exclusive"), `"data"`, `"lun"`) + machine{disks: disks, log: console.Path()}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(strings.Replace(cdrom("seed", "virtclaim_volume_binding.data"), "device", `bus = "scsi", device`, 1)),
				Check: func(*terraform.State) error {
					console.Await(t, "READY")
					drives(t, l, "sda", "data.raw")
					return nil
				},
			},
			{
				Config:           config(disk("new", "lun", "scsi")),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: func(*terraform.State) error {
					out, err := l.Hosts["host-a"].Virsh(context.Background(), "domblklist", "web")
					acctest.Contains(t, out, lun.IQN, "sdb")
					return err
				},
			},
			{Config: config(disk("seed", "lun", "scsi")), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
		},
	})
}

// The medium that a running guest boots from stays, even if its guest has not locked the tray.
func TestAccVirtualMachine_BootMediumStays(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	first := bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a", "host-b")
	second := strings.ReplaceAll(bound(acctest.Stores["file"](t, l).Source, "read-shared", "host-a"), `"data"`, `"second"`)
	config := func(binding, bindings string) string {
		seed := strings.Replace(cdrom("seed", "virtclaim_volume_binding."+binding), "device", "boot_order = 1, device", 1)
		return acctest.Provider(l, "media") + bindings + machine{disks: []string{seed}, log: console.Path()}.hcl(l)
	}
	medium := func() string {
		return acctest.Must(l.Hosts["host-a"].Virsh(context.Background(), "domblklist", "web"))(t)
	}
	before := ""
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config("data", first+second),
				Check:  func(*terraform.State) error { before = medium(); return nil },
			},
			{Config: config("second", second), ExpectError: message("as its disk seed, which it boots from, and runs")},
			{Config: config("second", first+second), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
			{
				Config: config("second", first+second),
				Check: func(*terraform.State) error {
					if now := medium(); now != before {
						return fmt.Errorf("the running guest has %s, and had %s", now, before)
					}
					return nil
				},
			},
			{Config: config("data", first+second), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)}, // so that all can be destroyed at once
		},
	})
}
