//go:build acc

package virtualmachine_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// guestHas waits until the guest of the machine web, which has booted that often, has that many processors online and that much memory, of
// which the kernel keeps some for itself.
func guestHas(t *testing.T, l *lab.Lab, console acctest.Console, boots, vcpus, mebibytes int) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		console.AwaitN(t, "READY", boots)
		acctest.Eventually(t, fmt.Sprintf("%d processors and %d MiB", vcpus, mebibytes), func() error {
			said := ask(t, l, "for cpu in /sys/devices/system/cpu/cpu[1-9]/online; do echo 1 >$cpu; done 2>/dev/null; "+
				"grep -c ^processor /proc/cpuinfo; awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo")
			fields := strings.Fields(said)
			if len(fields) < 2 {
				return fmt.Errorf("it says %q", said)
			}
			memory, err := strconv.Atoi(fields[1])
			if fields[0] != strconv.Itoa(vcpus) || memory > mebibytes || memory <= mebibytes-64 || err != nil {
				return fmt.Errorf("it has %s processors and %s MiB", fields[0], fields[1])
			}
			return nil
		})
		settled(t, l, mebibytes)
		if got := console.Boots(); got != boots {
			return fmt.Errorf("the guest has booted %d times, not %d", got, boots)
		}
		return nil
	}
}

// settled waits until libvirt has the balloon's size.
func settled(t *testing.T, l *lab.Lab, mebibytes int) {
	t.Helper()
	acctest.Eventually(t, fmt.Sprintf("a balloon that leaves %d MiB", mebibytes), func() error {
		live, err := l.Hosts["host-a"].Virsh(context.Background(), "dumpxml", "web")
		if err == nil && !strings.Contains(live, fmt.Sprintf("<currentMemory unit='KiB'>%d</currentMemory>", mebibytes<<10)) {
			err = fmt.Errorf("it does not")
		}
		return err
	})
}

// changeMemory changes the memory of the guest of the machine web, and goes on until stop is called.
func changeMemory(t *testing.T, l *lab.Lab) (stop func()) {
	t.Helper()
	set := func(ctx context.Context, mebibytes int) {
		out, err := l.Hosts["host-a"].Virsh(ctx, "setmem", "web", fmt.Sprintf("%dM", mebibytes), "--live")
		if err != nil && ctx.Err() == nil {
			t.Error(err, out)
		}
	}
	set(t.Context(), 240)
	settled(t, l, 240)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		for n := range 1000 {
			set(ctx, 208+16*(n%3))
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	})
	stop = func() {
		cancel()
		ended.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// drifted expects the drift that a refresh has found before the machine is corrected.
func drifted(want map[string]any) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(web, plancheck.ResourceActionUpdate), before(want),
	}}
}

type before map[string]any

func (want before) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, c := range req.Plan.ResourceChanges {
		was, _ := c.Change.Before.(map[string]any)
		for name, value := range want {
			if c.Address == web && was[name] != value {
				resp.Error = errors.Join(resp.Error, fmt.Errorf("%s is %v, not %v", name, was[name], value))
			}
		}
	}
}

// waits checks the pending changes of a machine.
func waits(words ...string) resource.TestCheckFunc {
	checks := []resource.TestCheckFunc{resource.TestCheckResourceAttr(web, "pending.#", strconv.Itoa(len(words)))}
	for n, word := range words {
		checks = append(checks, resource.TestCheckResourceAttr(web, fmt.Sprintf("pending.%d", n), word))
	}
	return resource.ComposeTestCheckFunc(checks...)
}

// One running guest gets processors and memory, and returns memory, within its maximum; it sees its disk grow, and is renamed. Changes that
// need a restart are pending for its next start, and an update restarts it only if it may.
func TestAccVirtualMachine_ScalesLive(t *testing.T) {
	for _, machineType := range []string{"pc", "q35"} {
		t.Run(machineType, func(t *testing.T) {
			l := acctest.Lab(t)
			console := acctest.NewConsole(t)
			config := func(vcpus int, memory, cmdline, more string) string {
				cpu := fmt.Sprintf(`cpu = { vcpus = %d, max_vcpus = 4, model = "Penryn", topology = { sockets = 2, cores = 2, threads = 1 } }`, vcpus)
				size := "64Mi"
				if vcpus > 1 {
					size = "96Mi"
				}
				return acctest.Provider(l, "scale") + fmt.Sprintf(`
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = %q
}
`, size) + machine{
					disks: []string{"data = { volume = virtclaim_disk.data.volume }"}, machineType: machineType,
					memory: memory, cmdline: cmdline, more: "max_memory = \"0.25Gi\"\n" + cpu + "\n" + more, log: console.Path(),
				}.hcl(l)
			}
			virsh := func(args ...string) string {
				out, err := l.Hosts["host-a"].Virsh(t.Context(), args...)
				if err != nil {
					t.Fatal(err, out)
				}
				return strings.TrimSpace(out)
			}
			// says checks what the guest reports of its disk's sectors, its processors and their sockets.
			says := func(parts ...string) resource.TestCheckFunc {
				return func(*terraform.State) error {
					acctest.Contains(t, ask(t, l, "echo size=$(cat /sys/block/vda/size); grep -m 1 'model name' /proc/cpuinfo; "+
						"echo sockets=$(grep 'physical id' /proc/cpuinfo | sort -u | wc -l)"), parts...)
					return nil
				}
			}
			update := planned(plancheck.ResourceActionUpdate)
			var stop func()
			const names = "title = \"the web\"\ndescription = \"serves <pages>\"\nautostart = true\n"
			named := func(*terraform.State) error {
				for _, where := range []string{"--live", "--config"} {
					if title, text := virsh("desc", "web", where, "--title"), virsh("desc", "web", where); title != "the web" || text != "serves <pages>" {
						return fmt.Errorf("its title and description are %q and %q (%s)", title, text, where)
					}
				}
				acctest.Contains(t, virsh("dominfo", "web"), "Autostart:      enable")
				return nil
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{
					{
						Config: config(1, "128Mi", "", ""),
						Check: resource.ComposeTestCheckFunc(guestHas(t, l, console, 1, 1, 128), says("size=131072", "Penryn", "sockets=1"),
							resource.TestCheckResourceAttr(web, "state", "running"), resource.TestCheckResourceAttr(web, "autostart", "false")),
					},
					{
						Config: config(3, "192Mi", "", names), ConfigPlanChecks: update,
						Check: resource.ComposeTestCheckFunc(guestHas(t, l, console, 1, 3, 192), says("size=196608", "sockets=2"), named),
					},
					{
						// An import does not use the configuration's spelling of equal values.
						ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true,
						ImportStateVerifyIgnore: []string{"max_memory", "cpu.mode"},
					},
					{
						// While the balloon changes, as it does when a guest boots, its size is no drift.
						PreConfig: func() { stop = changeMemory(t, l) },
						Config:    config(3, "192Mi", "", names), PlanOnly: true,
					},
					{
						PreConfig: func() {
							stop()
							virsh("setmem", "web", "224M", "--live")
							virsh("desc", "web", "--title", "--config", "--new-desc", "theirs")
							virsh("desc", "web", "--live", "--new-desc", "for now")
							virsh("autostart", "web", "--disable")
							settled(t, l, 224)
						},
						Config: config(3, "192Mi", "", names),
						ConfigPlanChecks: drifted(map[string]any{
							"memory": "224Mi", "title": "theirs", "description": "for now", "autostart": false,
						}),
						Check: resource.ComposeTestCheckFunc(guestHas(t, l, console, 1, 3, 192), named),
					},
					{
						// Fewer processors and another command line are pending. That is no drift.
						Config: config(2, "128Mi", "later", ""), ConfigPlanChecks: update,
						Check: resource.ComposeTestCheckFunc(guestHas(t, l, console, 1, 3, 128), waits("cpu", "boot")),
					},
					{
						Config: config(2, "128Mi", "later", "allow_restart = true"), ConfigPlanChecks: update,
						Check: resource.ComposeTestCheckFunc(guestHas(t, l, console, 2, 2, 128), func(*terraform.State) error {
							acctest.Contains(t, console.Text(t), "Power down")
							acctest.Contains(t, ask(t, l, "cat /proc/cmdline"), "later")
							return nil
						}, waits()),
					},
					{
						// What a failed update has stored is applied by the next one, though the configuration is unchanged.
						PreConfig: func() { virsh("suspend", "web") },
						Config:    config(2, "128Mi", "last", "allow_restart = true"), ExpectError: message("the machine could not be shut down"),
					},
					{
						PreConfig: func() { virsh("resume", "web") },
						Config:    config(2, "128Mi", "last", "allow_restart = true"), ConfigPlanChecks: update,
						Check: resource.ComposeTestCheckFunc(guestHas(t, l, console, 3, 2, 128), waits()),
					},
				},
			})
		})
	}
}

// What a host keeps for a machine is deleted with it: it would block the undefine of the machine, or be adopted by the next one of its
// name.
func TestAccVirtualMachine_DeletedWithItsSnapshots(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := acctest.Provider(l, "leftovers") + `
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = "1Mi"
}
` + machine{
		disks: []string{"data = { volume = virtclaim_disk.data.volume }"}, log: console.Path(),
	}.hcl(l)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config,
			Check: func(*terraform.State) error {
				console.Await(t, "READY")
				for _, command := range [][]string{{"snapshot-create-as", "web", "s"}, {"checkpoint-create-as", "web", "c"}, {"managedsave", "web"}} {
					if out, err := l.Hosts["host-a"].Virsh(t.Context(), command...); err != nil {
						return fmt.Errorf("%v: %w: %s", command, err, out)
					}
				}
				return nil
			},
			ExpectNonEmptyPlan: true, // it is off
		}},
	})
}
