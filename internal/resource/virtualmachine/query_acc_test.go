//go:build acc

package virtualmachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// byHand is a domain that nothing of virtclaim has made.
func byHand(name, devices string) string {
	return fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>32</memory>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><devices><serial type='pty'/>%s</devices></domain>`, name, devices)
}

// All that a host, its pools and a namespace have becomes import blocks and a configuration in one command, which plans no change.
func TestAccVirtualMachine_Queried(t *testing.T) {
	cli := acctest.NewCLISince(t, "1.14.0")
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	virsh := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(acctest.Must(b.Virsh(t.Context(), args...))(t))
	}
	acctest.Claim(t, l, "queried", "data", acctest.LUN(t, l, true, ""))
	ours := acctest.Provider(l, "queried") + `
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["host-b"]
  source = { persistent_volume_claim = { namespace = "queried", claim_name = "data" } }
}

resource "virtclaim_virtual_machine" "ours" {
  host    = "host-b"
  name    = "ours"
  memory  = "32Mi"
  running = false
  machine = { type = "q35", domain_type = "qemu" }
  disks   = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`
	cli.Write("main.tf", ours)
	cli.Must("apply", "-auto-approve", "-no-color")
	virsh("vol-create-as", "ssd", "base", "1M", "--format", "qcow2")
	virsh("vol-create-as", "ssd", "web", "1M", "--format", "qcow2", "--backing-vol", "base", "--backing-vol-format", "qcow2")
	disk := "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='" + virsh("vol-path", "web", "--pool", "ssd") +
		"'/><target dev='vda' bus='virtio'/></disk>"
	for name, devices := range map[string]string{"db": "", "web": disk} {
		if err := b.DefineXML(t.Context(), byHand(name, devices)); err != nil {
			t.Fatal(err)
		}
	}
	virsh("start", "web")

	cli.Write("all.tfquery.hcl", `
list "virtclaim_virtual_machine" "all" {
  provider = virtclaim
  config { host = "host-b" }
}

list "virtclaim_volume_binding" "all" {
  provider = virtclaim
  config { namespace = "queried" }
}
`)
	out := cli.Must("query", "-no-color")
	acctest.Contains(t, out, "host-b/ours", "host-b/web", "host-b/db", "namespace=queried", "queried/data/data")

	cli.Write("all.tfquery.hcl", `
list "virtclaim_virtual_machine" "found" {
  provider = virtclaim
  config {
    host      = "host-b"
    unmanaged = true
  }
}

list "virtclaim_disk" "found" {
  provider = virtclaim
  config {
    host      = "host-b"
    pool      = "ssd"
    unmanaged = true
  }
}
`)
	out = cli.Must("query", "-no-color", "-generate-config-out=found.tf")
	acctest.Contains(t, out, "host-b/web", "host-b/db", "host-b/ssd/base", "host-b/ssd/web")
	if strings.Contains(out, "host-b/ours") {
		t.Errorf("a managed machine is listed:\n%s", out)
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "4 to import, 0 to add, 0 to change, 0 to destroy")
	id := virsh("domid", "web")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	if virsh("domid", "web") != id {
		t.Error("the machine was restarted")
	}
	out, err := cli.Run("query", "-no-color")
	if err != nil || strings.Contains(out, "host-b/ssd/web") {
		t.Errorf("an imported disk is listed as unmanaged: %v\n%s", err, out)
	}
	virsh("destroy", "web")
	cli.DestroyAll()
}

// A host with many domains is listed with few calls.
func TestAccVirtualMachine_QueryOfMany(t *testing.T) {
	const n = 50
	cli := acctest.NewCLISince(t, "1.14.0")
	l := acctest.Lab(t)
	tap := acctest.Tap(t, l.Hosts["host-a"])
	for name := range n {
		if err := l.Hosts["host-a"].DefineXML(t.Context(), byHand(fmt.Sprintf("vm-%02d", name), "")); err != nil {
			t.Fatal(err)
		}
	}
	cli.Write("main.tf", strings.Replace(acctest.Provider(l, "many"), l.Hosts["host-a"].URI, tap.URI, 1))
	cli.Write("all.tfquery.hcl", "list \"virtclaim_virtual_machine\" \"all\" {\n  provider = virtclaim\n  config { host = \"host-a\" }\n}\n")
	counter{cli, tap}.do(t, "query", 200, "query")
	for name := range n {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "undefine", fmt.Sprintf("vm-%02d", name)))(t)
	}
}

// A machine is imported by its identity, which a rename does not change, and a move does.
func TestAccVirtualMachine_Identity(t *testing.T) {
	cli := acctest.NewCLISince(t, "1.12.0")
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	if err := b.DefineXML(t.Context(), byHand("old", "")); err != nil {
		t.Fatal(err)
	}
	uuid := strings.TrimSpace(acctest.Must(b.Virsh(t.Context(), "domuuid", "old"))(t))
	write := func(host, name, more string) {
		cli.Write("main.tf", acctest.Provider(l, "identity")+fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host    = %q
  name    = %q
  memory  = "32Mi"
  running = false
  machine = { type = "q35", domain_type = "qemu" }
  serial  = {}
}
%s`, host, name, more))
	}
	write("host-b", "old", fmt.Sprintf(`
import {
  to       = virtclaim_virtual_machine.web
  identity = { host = "host-b", uuid = %q }
}
`, uuid))
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "1 imported, 0 added, 0 changed, 0 destroyed")
	shows := func(host string) {
		t.Helper()
		acctest.Contains(t, cli.Must("show", "-json"), fmt.Sprintf(`"identity":{"host":%q,"uuid":%q}`, host, uuid))
		acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	}
	shows("host-b")
	write("host-b", "new", "")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	shows("host-b")
	write("host-a", "new", "")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	shows("host-a")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// Each action is done to the running machine that it names, and to no other.
func TestAccVirtualMachine_Actions(t *testing.T) {
	cli := acctest.NewCLISince(t, "1.14.0")
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := acctest.Provider(l, "actions") + machine{log: console.Path(), more: "force_stop = true"}.hcl(l)
	for _, name := range []string{"reboot", "reset", "pause", "resume", "send_key"} {
		keys := ""
		if name == "send_key" {
			keys = "keys = [29, 56, 111]"
		}
		config += fmt.Sprintf(`
action "virtclaim_%[1]s" "web" {
  config {
    host = "host-a"
    name = "web"
    %[2]s
  }
}
`, name, keys)
	}
	config += `
action "virtclaim_reset" "none" {
  config {
    host = "host-a"
    name = "missing"
  }
}
`
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	console.AwaitN(t, "READY", 1)
	invoke := func(name string) (string, error) {
		return cli.Run("apply", "-auto-approve", "-no-color", "-invoke=action.virtclaim_"+name)
	}
	is := func(state string) {
		t.Helper()
		acctest.Contains(t, acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "domstate", "web"))(t), state)
	}
	for _, step := range []struct{ action, state string }{
		{"pause.web", "paused"}, {"resume.web", "running"}, {"send_key.web", "running"}, {"reset.web", "running"},
	} {
		if out, err := invoke(step.action); err != nil {
			t.Fatalf("%s: %v\n%s", step.action, err, out)
		}
		is(step.state)
	}
	console.AwaitN(t, "READY", 2) // the reset
	if out, err := invoke("reboot.web"); err != nil {
		t.Fatalf("reboot: %v\n%s", err, out)
	}
	if out, err := invoke("reset.none"); err == nil || !message("The action failed").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
	cli.Write("main.tf", config+"# again\n")
	cli.Replace("main.tf", `name    = "web"`, `name    = "web"`+"\n  running = false")
	cli.Must("apply", "-auto-approve", "-no-color")
	if out, err := invoke("pause.web"); err == nil || !message("it is off").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
