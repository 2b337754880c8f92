//go:build acc

package virtualmachine_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// withAgent is a machine whose guest has an agent, and runs a script at its boot.
func withAgent(l *lab.Lab, console acctest.Console, script, cmdline, more string) string {
	run := base64.StdEncoding.EncodeToString([]byte(script))
	return acctest.Provider(l, "agent") + machine{
		machineType: "q35", cmdline: "virtclaim.agent=vport0p1 virtclaim.run=" + run + " " + cmdline, log: console.Path(), more: more,
	}.hcl(l)
}

// ignoresButton is the script of a guest that ignores its power button.
const ignoresButton = "killall acpid"

// The guest ignores its power button: its agent shuts it down, without force. With shutdown_mode = "acpi" the agent is not asked, and so the
// error says, which the next destroy by the agent puts right. The plugged processor is put online, as the warning of a guest without agent
// says by hand.
func TestAccVirtualMachine_AgentShutsDown(t *testing.T) {
	l := acctest.Lab(t)
	console, cli := acctest.NewConsole(t), acctest.NewCLI(t)
	write := func(vcpus int, mode, timeout string, running bool) {
		cli.Write("main.tf", withAgent(l, console, ignoresButton, "", fmt.Sprintf(`
  guest_agent   = true
  cpu           = { vcpus = %d, max_vcpus = 2 }
  wait_for      = { agent = true }
  shutdown_mode = %q
  running       = %t
  timeouts      = { update = %q }
`, vcpus, mode, running, timeout)))
	}
	write(1, "acpi", "10m", true)
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")

	write(2, "acpi", "10m", true)
	if out := cli.Must("apply", "-auto-approve", "-no-color"); message("may be offline").MatchString(out) {
		t.Errorf("the agent has not put the processor online:\n%s", out)
	}
	acctest.Contains(t, ask(t, l, "cat /sys/devices/system/cpu/online"), "0-1")

	write(2, "acpi", "8s", false)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("did not shut down in time: it ignores its power button, which was pressed").MatchString(out) {
		t.Errorf("by its button: %v\n%s", err, out)
	}
	write(2, "agent", "5m", false)
	start := time.Now()
	cli.Must("apply", "-auto-approve", "-no-color")
	if took := time.Since(start); took > lab.Patience(30*time.Second) {
		t.Errorf("the agent took %s", took)
	}
	acctest.Contains(t, console.Text(t), "Power down")
	acctest.Contains(t, plan(t, cli), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Of a guest with neither a power button nor a willing agent the error says so; the processors that its agent leaves alone are warned of.
// Without a willing agent the button works as before.
func TestAccVirtualMachine_AgentRefuses(t *testing.T) {
	l := acctest.Lab(t)
	console, cli := acctest.NewConsole(t), acctest.NewCLI(t)
	write := func(vcpus int, more string) {
		cli.Write("main.tf", withAgent(l, console, ignoresButton,
			"virtclaim.refuse=guest-shutdown virtclaim.refuse=guest-file-open virtclaim.refuse=guest-get-vcpus", fmt.Sprintf(`
  guest_agent = true
  cpu         = { vcpus = %d, max_vcpus = 2 }
  wait_for    = { cloud_init = true }
  %s
`, vcpus, more)))
	}
	write(1, "")
	start := time.Now()
	out := cli.Must("apply", "-auto-approve", "-no-color")
	if !message("cloud-init was not waited for", "it does not allow guest-file-open.", "--allow-rpcs").MatchString(out) {
		t.Errorf("it does not warn:\n%s", out)
	}
	if took := time.Since(start); took > lab.Patience(time.Minute) {
		t.Errorf("it was waited for %s", took)
	}
	console.Await(t, "READY")
	write(2, "")
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !message("may be offline in its guest", "/cpuN/online", "Its agent did not:").MatchString(out) {
		t.Errorf("it does not warn:\n%s", out)
	}
	write(2, "running = false\n timeouts = { update = \"10s\" }")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("no guest agent took the request, and it ignores its power button, which was pressed").MatchString(out) {
		t.Errorf("by neither: %v\n%s", err, out)
	}
	ask(t, l, "acpid -l /dev/null")
	cli.Must("destroy", "-auto-approve", "-no-color")
	acctest.Contains(t, console.Text(t), "Power down")
}

// An agent that hangs delays the power button by some seconds.
func TestAccVirtualMachine_AgentHangs(t *testing.T) {
	l := acctest.Lab(t)
	console, cli := acctest.NewConsole(t), acctest.NewCLI(t)
	cli.Write("main.tf", withAgent(l, console, "touch /hangs", "", "guest_agent = true\n wait_for = { agent = true }\n timeouts = { delete = \"5m\" }"))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")
	start := time.Now()
	cli.Must("destroy", "-auto-approve", "-no-color")
	if took := time.Since(start); took < 9*time.Second || took > lab.Patience(30*time.Second) {
		t.Errorf("it took %s", took)
	}
	acctest.Contains(t, console.Text(t), "Power down")
}

// The apply ends when cloud-init has, and warns of its first error.
func TestAccVirtualMachine_WaitsForCloudInit(t *testing.T) {
	l := acctest.Lab(t)
	for name, c := range map[string]struct {
		result string
		warns  *regexp.Regexp
	}{
		"through": {`{"v1": {"datasource": "None", "errors": []}}`, nil},
		"failed":  {`{"v1": {"datasource": "None", "errors": ["no network", "more"]}}`, message("cloud-init has failed", `the first of 2 errors of cloud-init is "no network"`)},
		"none":    {"", message("What was waited for has not come", "there was no end of cloud-init", "if the image has cloud-init", "No such file")},
	} {
		t.Run(name, func(t *testing.T) {
			console, cli := acctest.NewConsole(t), acctest.NewCLI(t)
			script, timeout := "", "15s"
			if c.result != "" {
				script, timeout = "mkdir -p /run/cloud-init; sleep 3; echo '"+c.result+"' >/run/cloud-init/result.json", "5m"
			}
			cli.Write("main.tf", withAgent(l, console, script, "", fmt.Sprintf(`
  guest_agent = true
  wait_for    = { cloud_init = true, timeout = %q }
`, timeout)))
			out := cli.Must("apply", "-auto-approve", "-no-color")
			if c.result != "" {
				acctest.Contains(t, ask(t, l, "cat /run/cloud-init/result.json"), c.result)
			}
			if c.warns == nil && message("waited for").MatchString(out) || c.warns != nil && !c.warns.MatchString(out) {
				t.Errorf("it says:\n%s", out)
			}
			console.Await(t, "READY")
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}

// The setting is ours alone: an import has the default, and a change of it is no change of the machine.
func TestAccVirtualMachine_ShutdownModeIsState(t *testing.T) {
	l := acctest.Lab(t)
	config := func(mode string) string {
		return acctest.Provider(l, "agent") + machine{idle: true, more: mode + "\n running = false"}.hcl(l)
	}
	has := func(mode string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(web, "shutdown_mode", mode)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(""), Check: has("agent")},
			{
				ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"force_stop"},
			},
			{Config: config(""), PlanOnly: true},
			{Config: config(`shutdown_mode = "button"`), PlanOnly: true, ExpectError: message("shutdown_mode", "button")},
			{Config: config(`wait_for = { cloud_init = true }`), PlanOnly: true, ExpectError: message("No agent to wait for", "Set guest_agent = true")},
			{Config: config(`shutdown_mode = "acpi"`), Check: has("acpi")},
		},
	})
}
