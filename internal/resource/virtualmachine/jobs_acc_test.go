//go:build acc

package virtualmachine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// off waits until a machine is off.
func off(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	acctest.Eventually(t, name+" is off", func() error {
		if out := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "domstate", name))(t); !strings.Contains(out, "shut off") {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
}

// says fails the test when a command did not print each part.
func says(t *testing.T, printed string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !message(part).MatchString(printed) {
			t.Errorf("%q is not in:\n%s", part, printed)
		}
	}
}

// A job that has ended stays off, until it is told to run again; one that was stopped is not done. What a job said last is in a warning.
func TestAccVirtualMachine_RunOnce(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	const script = `trap 'exit 9' TERM; echo working; while [ -e /hold ]; do /bin/busybox sleep 1; done; echo "no row 7" >&2; exit 3`
	job := `once = true
    timestamps = true`
	config := acctest.Provider(l, "machines") + runnable(t, l, script, nil) + runs(console, job, "")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	plan := func(want ...string) {
		t.Helper()
		says(t, cli.Must("plan", "-no-color"), want...)
	}
	cli.Must("apply", "-auto-approve")
	console.Await(t, "virtclaim: exit 3")
	off(t, l, "web")
	if text := console.Text(t); !regexp.MustCompile(`\n\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z no row 7\r?\n`).MatchString(text) {
		t.Errorf("a line has no time:\n%s", text)
	}
	plan("No changes.", "exit code 3", `no row 7`, "-replace")

	cli.Replace("main.tf", `memory     = "96Mi"`, `memory     = "100Mi"`)
	cli.Must("apply", "-auto-approve")
	off(t, l, "web")
	plan("No changes.")
	console.AwaitN(t, "virtclaim: exit 3", 1)

	cli.Replace("main.tf", "force_stop = true", "running = false")
	cli.Must("apply", "-auto-approve")
	cli.Replace("main.tf", "running = false", "running = true")
	cli.Replace("main.tf", `once = true`, "once = true\n    command = [\"touch /hold; "+strings.ReplaceAll(script, `"`, `\"`)+"\"]")
	cli.Replace("main.tf", "touch", "/bin/busybox touch")
	cli.Must("apply", "-auto-approve")
	console.AwaitN(t, "working", 2)
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "shutdown", "web"))(t)
	console.Await(t, "virtclaim: exit 9")
	off(t, l, "web")
	plan("1 to change", "running")
	cli.Must("destroy", "-auto-approve")
}

// What ends while it is waited for says so with its last words.
func TestAccVirtualMachine_RunEndsWhileAwaited(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "machines")+runnable(t, l, "echo 'bind: address already in use' >&2; exit 1", nil)+
		runs(acctest.NewConsole(t), "", "guest_agent = true\n  wait_for = { agent = true }"))
	says(t, cli.Must("apply", "-auto-approve", "-no-color"), "exit code 1", "bind: address already in use")
	says(t, cli.Must("plan", "-no-color"), "bind: address already in use", "1 to change")
	cli.Must("destroy", "-auto-approve")
}

// With a terminal the program reads from the console; without one its input is empty, and its output a pipe.
func TestAccVirtualMachine_RunTTY(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	const script = `[ -t 0 ] && [ -t 1 ] && echo a terminal; [ -p /proc/self/fd/1 ] && [ -c /proc/self/fd/0 ] && echo a pipe; echo again > /dev/stdout; exec /bin/busybox sleep 1000`
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "machines")+runnable(t, l, script, nil)+runs(console, `user = "7:8"`, "allow_restart = true"))
	cli.Must("apply", "-auto-approve")
	console.Await(t, "a pipe")
	console.AwaitN(t, "again", 1)
	cli.Replace("main.tf", `user = "7:8"`, "user = \"7:8\"\n    tty = true\n    stop_timeout = 1")
	cli.Must("apply", "-auto-approve")
	console.Await(t, "a terminal")
	console.AwaitN(t, "again", 2)
	cli.Must("destroy", "-auto-approve")
}

// With a prefix and create_before_destroy the new machine runs before the old one goes.
func TestAccVirtualMachine_BlueGreen(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	replacer := strings.NewReplacer(`name       = "root"`, `name_prefix = "root-"`, `name       = "web"`, `name_prefix = "web-"`,
		`interfaces = { lan = { user = true } }`, `lifecycle {
    create_before_destroy = true
    replace_triggered_by  = [virtclaim_disk.root.id]
  }`)
	cli := acctest.NewCLI(t)
	config := acctest.Provider(l, "machines") + replacer.Replace(runnable(t, l, "echo up; exec /bin/busybox sleep 1000", nil)+runs(console, "stop_timeout = 1", ""))
	cli.Write("main.tf", config+`
output "name" {
  value = virtclaim_virtual_machine.web.name
}
`)
	cli.Must("apply", "-auto-approve")
	first := strings.TrimSpace(cli.Must("output", "-raw", "name"))
	if !regexp.MustCompile(`^web-[a-z0-9]{10}$`).MatchString(first) {
		t.Errorf("its name is %q", first)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	out := cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_disk.root")
	made, gone := strings.Index(out, "virtclaim_virtual_machine.web: Creation complete"), strings.Index(out, "virtclaim_virtual_machine.web (deposed object")
	if made < 0 || gone < made {
		t.Errorf("the old machine went at %d, before the new one was there at %d:\n%s", gone, made, out)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	second := strings.TrimSpace(cli.Must("output", "-raw", "name"))

	// An apply that was killed has left it: it is taken again, not made twice.
	xml := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "--inactive", "--security-info", second))(t)
	cli.Must("state", "rm", "virtclaim_virtual_machine.web")
	if err := l.Hosts["host-a"].DefineXML(t.Context(), regexp.MustCompile(`phase=["'][a-z]+["']`).ReplaceAllString(xml, `phase="creating"`)); err != nil {
		t.Fatal(err)
	}
	cli.Must("apply", "-auto-approve")
	if again := strings.TrimSpace(cli.Must("output", "-raw", "name")); again != second {
		t.Errorf("%s was left, and %s was made", second, again)
	}
	cli.Replace("main.tf", `name_prefix = "web-"`, fmt.Sprintf("name = %q", second))
	says(t, cli.Must("plan", "-no-color"), "0 to destroy")
	cli.Must("destroy", "-auto-approve")
}
