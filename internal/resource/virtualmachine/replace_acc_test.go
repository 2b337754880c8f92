//go:build acc

package virtualmachine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A host, name or type that is unknown until the apply replaces no machine, and is an error if it turns out to need another machine.
func TestAccVirtualMachine_UnknownNeverReplaces(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	config := func(host, memory string) {
		cli.Write("main.tf", acctest.Provider(l, "unknown")+fmt.Sprintf(`
resource "terraform_data" "place" {
  input = { host = %q, name = "web", memory = %q, type = "pc" }
}

resource "virtclaim_virtual_machine" "web" {
  host    = terraform_data.place.output.host
  name    = terraform_data.place.output.name
  memory  = terraform_data.place.output.memory
  running = false
  machine = { type = terraform_data.place.output.type, domain_type = "qemu" }
}

output "uuid" { value = virtclaim_virtual_machine.web.uuid }
`, host, memory))
	}
	config("host-a", "32Mi")
	cli.Must("apply", "-auto-approve", "-no-color")
	was := cli.Must("output", "-raw", "uuid")
	config("host-a", "48Mi")
	if out := cli.Must("apply", "-auto-approve", "-no-color"); !strings.Contains(out, "0 added, 2 changed, 0 destroyed") {
		t.Errorf("the machine was not just changed:\n%s", out)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") || cli.Must("output", "-raw", "uuid") != was {
		t.Errorf("the machine is not the one that it was:\n%s", plan)
	}
	config("host-b", "48Mi") // it is moved, also if only the apply tells where
	cli.Must("apply", "-auto-approve", "-no-color")
	config("host-b", "64Mi")
	cli.Replace("main.tf", `type = "pc"`, `type = "q35"`)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("Plan and apply again: the plan will say that").MatchString(out) {
		t.Errorf("the apply ended with %v:\n%s", err, out)
	}
	if memory, err := l.Hosts["host-b"].Virsh(t.Context(), "dominfo", was); err != nil || !strings.Contains(memory, "49152 KiB") {
		t.Errorf("the machine was touched: %v %s", err, memory)
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "virtclaim_virtual_machine.web must be replaced")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A machine that is off is renamed with its UUID, and its TPM. A running one is replaced, as the plan says, and so is one with UEFI, whose
// variables libvirt would leave behind.
func TestAccVirtualMachine_Renames(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	a := l.Hosts["host-a"]
	config := func(name string, running bool, more string) {
		cli.Write("main.tf", acctest.Provider(l, "renamed")+fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = %q
  memory     = "64Mi"
  running    = %t
  machine    = { type = "q35", domain_type = "qemu" }
  tpm        = {}
  force_stop = true
  timeouts   = { update = "20s", delete = "20s" }
  %s
}
`, name, running, more))
	}
	config("web", true, "")
	cli.Must("apply", "-auto-approve", "-no-color")
	uuid := strings.TrimSpace(acctest.Must(a.Virsh(t.Context(), "domuuid", "web"))(t))
	config("shop", true, "")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "virtclaim_virtual_machine.web must be replaced")
	config("web", false, "")
	cli.Must("apply", "-auto-approve", "-no-color")
	config("shop", true, "")
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "0 added, 1 changed, 0 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes.")
	if is := strings.TrimSpace(acctest.Must(a.Virsh(t.Context(), "domuuid", "shop"))(t)); is != uuid {
		t.Errorf("the machine %s has become %s", uuid, is)
	}
	acctest.Contains(t, acctest.Must(a.Virsh(t.Context(), "domstate", "shop"))(t), "running")
	config("shop", false, `firmware = { type = "efi" }`)
	cli.Must("apply", "-auto-approve", "-no-color")
	config("web", false, `firmware = { type = "efi" }`)
	acctest.Contains(t, cli.Must("plan", "-no-color"), "virtclaim_virtual_machine.web must be replaced")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// A machine that is made again gives each disk the target that it had, on another host, too: with other ones it would boot from another disk.
func TestAccVirtualMachine_ReplacementKeepsTargets(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	config := func(host string, disks ...string) {
		text := acctest.Provider(l, "replaced")
		for n, key := range disks {
			text += fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = %[2]q
  name       = %[1]q
  usage_type = "fast"
  size       = "1Mi"
}
`, key, host)
			disks[n] = fmt.Sprintf("%[1]s = { volume = virtclaim_disk.%[1]s.volume }", key)
		}
		cli.Write("main.tf", text+machine{host: host, disks: disks, idle: true, more: "running = false"}.hcl(l))
	}
	has := func(host string) {
		t.Helper()
		xml := acctest.Must(l.Hosts[host].Virsh(t.Context(), "dumpxml", "web"))(t)
		for target, key := range map[string]string{"vda": "root", "vdb": "data"} {
			if !regexp.MustCompile(`<target dev='` + target + `' bus='virtio'/>\s*<alias name='ua-disk-` + key + `'/>`).MatchString(xml) {
				t.Errorf("%s is not %s:\n%s", key, target, xml)
			}
		}
		if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
			t.Errorf("the plan is not empty:\n%s", plan)
		}
	}
	config("host-a", "root")
	cli.Must("apply", "-auto-approve", "-no-color")
	config("host-a", "root", "data")
	cli.Must("apply", "-auto-approve", "-no-color")
	has("host-a")
	cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_virtual_machine.web")
	has("host-a")
	config("host-b", "root", "data")
	cli.Must("apply", "-auto-approve", "-no-color")
	has("host-b")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The first of several instances is removed: each of the others takes the name that the next one frees in the same apply, also of one that
// takes a while to stop, because its firmware ignores its power button.
func TestAccVirtualMachine_CountFromTheFront(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	config := func(names, running string) string {
		return acctest.Provider(l, "count") + `
resource "virtclaim_virtual_machine" "each" {
  count      = length(local.names)
  host       = "host-a"
  name       = local.names[count.index]
  memory     = "32Mi"
  machine    = { type = "pc", domain_type = "qemu" }
  running    = ` + running + `
  force_stop = true
  timeouts   = { delete = "10s" }
}
locals {
  names = [` + names + `]
}
`
	}
	cli.Write("main.tf", config(`"one", "two", "three"`, `local.names[count.index] == "two"`))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", config(`"two", "three"`, "false"))
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "2 added, 0 changed, 3 destroyed")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
