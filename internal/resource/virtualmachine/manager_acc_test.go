//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const web = "virtclaim_virtual_machine.web"

// planned expects one action for the machine.
func planned(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(web, action)}}
}

func TestAccVirtualMachine_LifeCycle(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "life")
	acctest.Claim(t, l, "life", "data", lun)
	console := acctest.NewConsole(t)
	a := l.Hosts["host-a"]
	config := func(m machine) string {
		m.disks, m.log = []string{disk("root", "data", "virtio")}, console.Path() // an idle one has no log
		return acctest.Provider(l, "life") + claimBinding("life", "data", "write-exclusive", "host-a") + m.hcl(l)
	}
	boots := func(n int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			console.AwaitN(t, "READY", n)
			if got := console.Boots(); got != n {
				return fmt.Errorf("the guest has booted %d times, not %d", got, n)
			}
			return nil
		}
	}
	// runs checks that a machine of that type runs, and suspends it, because it has no guest that shuts down.
	runs := func(machineType string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			running(t, a)
			acctest.Contains(t, acctest.Must(a.Virsh(context.WithoutCancel(t.Context()), "dumpxml", "web"))(t), "machine='pc-"+map[string]string{"pc": "i440fx", "q35": "q35"}[machineType])
			suspended(t, a)
			return nil
		}
	}
	virsh := func(args ...string) func() {
		return func() {
			if out, err := a.Virsh(context.Background(), args...); err != nil {
				t.Fatalf("virsh %v: %v: %s", args, err, out)
			}
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(machine{}), ConfigPlanChecks: planned(plancheck.ResourceActionCreate), Check: boots(1)},
			{ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true},
			{
				// Processors, memory and boot require only a new definition; the guest keeps running.
				Config:           config(machine{memory: "160Mi", more: "cpu = { vcpus = 2 }", cmdline: "changed"}),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(boots(1),
					resource.TestCheckResourceAttr(web, "memory", "160Mi"),
					resource.TestCheckResourceAttr(web, "cpu.vcpus", "2")),
			},
			{
				// Another spelling of the same value is no change.
				Config:   config(machine{memory: "163840Ki", more: "cpu = { vcpus = 2 }", cmdline: "changed"}),
				PlanOnly: true,
			},
			{
				// Drift of memory is detected and corrected.
				PreConfig:        virsh("setmaxmem", "web", "200M", "--config"),
				Config:           config(machine{memory: "160Mi", more: "cpu = { vcpus = 2 }", cmdline: "changed"}),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            boots(1),
			},
			{
				// A machine that went off is started again, now as defined.
				PreConfig:        virsh("destroy", "web"),
				Config:           config(machine{memory: "160Mi", more: "cpu = { vcpus = 2 }", cmdline: "changed"}),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            boots(2),
			},
			{
				// It is shut down gracefully, not powered off.
				Config:           config(machine{memory: "160Mi", more: "cpu = { vcpus = 2 }\n running = false", cmdline: "changed"}),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(resource.TestCheckResourceAttr(web, "state", "shut off"), func(*terraform.State) error {
					console.Await(t, "Power down")
					return nil
				}),
			},
			{
				Config:           config(machine{memory: "160Mi", more: "cpu = { vcpus = 2 }", cmdline: "changed"}),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            boots(3),
			},
			{
				// Removed outside of Terraform. No guest is needed from here on.
				PreConfig:        func() { virsh("destroy", "web")(); virsh("undefine", "web")() },
				Config:           config(machine{idle: true}),
				ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
				Check:            runs("pc"),
			},
			{
				Config:           config(machine{idle: true, machineType: "q35"}),
				ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
				Check:            runs("q35"),
			},
		},
	})
}

// devices is a disk of the machine web, in its live and its persistent definition.
func devices(t *testing.T, l *lab.Lab, key string) (found string) {
	t.Helper()
	for _, args := range [][]string{{"dumpxml", "web"}, {"dumpxml", "web", "--inactive"}} {
		for part := range strings.SplitSeq(acctest.Must(l.Hosts["host-a"].Virsh(context.Background(), args...))(t), "<disk ") {
			device, _, _ := strings.Cut(part, "</disk>")
			if strings.Contains(device, "'ua-disk-"+key+"'") {
				found += device
			}
		}
	}
	return found
}

func TestAccVirtualMachine_DiskTargetsStableOnInsert(t *testing.T) {
	l := acctest.Lab(t)
	bindings := acctest.Provider(l, "more")
	for _, name := range []string{"b", "a"} {
		acctest.Claim(t, l, "more", name, acctest.LUN(t, l, false, "disk "+name))
		bindings += claimBinding("more", name, "write-exclusive", "host-a")
	}
	console := acctest.NewConsole(t)
	config := func(disks ...string) string { return bindings + machine{disks: disks, log: console.Path()}.hcl(l) }
	target := func(key, want string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			out, err := l.Hosts["host-a"].Virsh(context.Background(), "dumpxml", "--inactive", "web")
			if err != nil {
				return err
			}
			found := regexp.MustCompile(`(?s)<target dev='(\w+)'[^>]*/>[^d]*<alias name='ua-disk-` + key + `'/>`).FindStringSubmatch(out)
			if found == nil || found[1] != want {
				return fmt.Errorf("disk %s is not at %s in:\n%s", key, want, out)
			}
			return nil
		}
	}
	before := ""
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(disk("b", "b", "virtio")),
				Check: resource.ComposeTestCheckFunc(target("b", "vda"), func(*terraform.State) error {
					console.Await(t, "READY")
					before = devices(t, l, "b")
					return nil
				}),
			},
			{
				// A disk that sorts before the other one does not move that one, not even on the bus.
				Config:           config(disk("a", "a", "virtio"), disk("b", "b", "virtio")),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(target("b", "vda"), target("a", "vdb"), func(*terraform.State) error {
					if after := devices(t, l, "b"); after != before || !strings.Contains(after, "type='pci'") || console.Boots() != 1 {
						return fmt.Errorf("disk b is not as it was, after %d boots:\n%s\nand was:\n%s", console.Boots(), after, before)
					}
					return nil
				}),
			},
			{
				Config:           config(disk("a", "a", "virtio")),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            resource.ComposeTestCheckFunc(target("a", "vdb"), resource.TestCheckResourceAttr(web, "disks.%", "1")),
			},
			{
				// What the running machine refuses is not in its persistent definition either.
				Config:      config(disk("a", "a", "virtio"), handmade("c", "write-exclusive", "virtio", "", "host-a")),
				ExpectError: message("disk c could not be plugged into the running machine", "iSCSI"),
			},
			{
				// A disk that was attached manually is drift.
				PreConfig: func() {
					if xml, err := l.Hosts["host-a"].Virsh(context.Background(), "dumpxml", "--inactive", "web"); err != nil || strings.Contains(xml, "ua-disk-c") {
						t.Fatal("the disk that was refused is stored:", err, xml)
					}
					out, err := l.Hosts["host-a"].Virsh(context.Background(), "attach-disk", "web", "/dev/null", "vdz", "--config")
					if err != nil {
						t.Fatal(err, out)
					}
				},
				Config:           config(disk("a", "a", "virtio")),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            resource.TestCheckResourceAttr(web, "disks.%", "1"),
			},
			{
				// So is a disk that only the running machine has.
				PreConfig: func() {
					scratch := filepath.Join(l.Hosts["host-a"].Dir, "scratch.img")
					if err := os.WriteFile(scratch, make([]byte, 1<<20), 0o600); err != nil {
						t.Fatal(err)
					}
					out, err := l.Hosts["host-a"].Virsh(context.Background(), "attach-disk", "web", scratch, "vdy", "--live")
					if err != nil {
						t.Fatal(err, out)
					}
				},
				Config:           config(disk("a", "a", "virtio")),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: func(*terraform.State) error {
					out, err := l.Hosts["host-a"].Virsh(context.Background(), "domblklist", "web")
					if err != nil || strings.Contains(out, "vdy") {
						return fmt.Errorf("the disk is still there: %w\n%s", err, out)
					}
					return nil
				},
			},
		},
	})
}

// The next apply resumes an apply that was killed after the domain was defined, and only for its own domain.
func TestAccVirtualMachine_InterruptedCreateResumes(t *testing.T) {
	l := acctest.Lab(t)
	a := l.Hosts["host-a"]
	console := acctest.NewConsole(t)
	leftOver := func(owner string) func() {
		return func() {
			xml := fmt.Sprintf(`<domain type='qemu'><name>web</name><memory unit='MiB'>64</memory>
				<metadata><machine xmlns='https://virtclaim.io/libvirt/domain/1' owner='%s' phase='creating'/></metadata>
				<os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/></features></domain>`, owner)
			if err := a.DefineXML(context.Background(), xml); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := acctest.Provider(l, "interrupted") + machine{log: console.Path()}.hcl(l)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				PreConfig:   leftOver("somebody-else"),
				Config:      config,
				ExpectError: regexp.MustCompile(`(?s)was\s+not\s+made\s+by\s+this\s+configuration.*terraform\s+import`),
			},
			{
				PreConfig: func() {
					if out, err := a.Virsh(context.Background(), "undefine", "web"); err != nil {
						t.Fatal("the domain of somebody else was not left alone:", err, out)
					}
					leftOver("interrupted")()
				},
				Config: config,
				Check: func(*terraform.State) error {
					console.Await(t, "READY")
					return nil
				},
			},
		},
	})
}

// A machine that can be neither started nor removed is in state: the next command finds it. The leak checker checks the host afterwards.
func TestAccVirtualMachine_FailedRevertKeepsDomain(t *testing.T) {
	l := acctest.Lab(t)
	cli, tap := acctest.Tapped(t, l, "")
	cli.Write("main.tf", strings.ReplaceAll(machine{log: acctest.NewConsole(t).Path()}.hcl(l), l.Guest.Kernel, "/nowhere/vmlinux"))
	tap.Arm(lab.Fault{Call: lab.CallUndefine, Nth: 1})
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if !tap.Fired() || err == nil || !message("The machine could not be started", "Left behind: the domain").MatchString(out) {
		t.Errorf("the machine could be started, or taken back: %v\n%s", err, out)
	}
	cli.Must("destroy", "-auto-approve")
}

// A host defines the domain and never answers: the domain is removed, also if no owner would find it again.
func TestAccVirtualMachine_CreateOnUnresponsiveHostIsReverted(t *testing.T) {
	l := acctest.Lab(t)
	cli, tap := acctest.Tapped(t, l, "")
	cli.Write("main.tf", machine{log: acctest.NewConsole(t).Path()}.hcl(l))
	tap.Arm(lab.Fault{Call: lab.CallDefine, Nth: 1, After: true})
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if !tap.Fired() || err == nil {
		t.Fatalf("the apply was not interrupted: %v\n%s", err, out)
	}
	if listed, err := l.Hosts["host-a"].Virsh(t.Context(), "list", "--all", "--name"); err != nil || strings.Contains(listed, "web") {
		t.Errorf("the domain is still there: %v\n%s", err, out)
	}
	cli.Must("apply", "-auto-approve")
	cli.Must("destroy", "-auto-approve")
}
