package virtualmachine_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// guestHas waits until the guest of the machine web, which has booted so often, has put so many processors online and has so
// much memory, of which the kernel keeps some for itself.
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

// settled waits until libvirt has heard of the balloon.
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

// One running guest is given processors and memory and loses memory, within its maximum; what it can't be given while it
// runs waits for its next start, which an update only makes where it may.
func TestAccARunningGuestIsScaled(t *testing.T) {
	for _, machineType := range []string{"pc", "q35"} {
		t.Run(machineType, func(t *testing.T) {
			l := acctest.Lab(t)
			console := acctest.NewConsole(t)
			config := func(memory, more string) string {
				return acctest.Provider(l, "scale") + machine{machineType: machineType, memory: memory, more: more, log: console.Path()}.hcl(l)
			}
			virsh := func(args ...string) func() {
				return func() {
					if out, err := l.Hosts["host-a"].Virsh(t.Context(), args...); err != nil {
						t.Fatal(err, out)
					}
				}
			}
			update := planned(plancheck.ResourceActionUpdate)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{
					{
						Config: config("128Mi", `
							max_memory = "0.25Gi"
							cpu        = { vcpus = 1, max_vcpus = 4, model = "Penryn", topology = { sockets = 2, cores = 2, threads = 1 } }`),
						Check: guestHas(t, l, console, 1, 1, 128),
					},
					{
						ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true,
						ImportStateVerifyIgnore: []string{"max_memory", "cpu.mode"},
					},
					{
						Config: config("192Mi", `
							max_memory = "256Mi"
							cpu        = { vcpus = 3, max_vcpus = 4, model = "Penryn", topology = { sockets = 2, cores = 2, threads = 1 } }`),
						ConfigPlanChecks: update,
						Check:            guestHas(t, l, console, 1, 3, 192),
					},
				},
			})
			_ = virsh
		})
	}
}
