//go:build acc

package disk_test

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

func TestMain(m *testing.M) { acctest.Main(m) }

const (
	theDisk    = "virtclaim_disk.root"
	theMachine = "virtclaim_virtual_machine.web"
)

// binding is the binding of a claim in the namespace disks.
func binding(claim, mode string, hosts ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" %[1]q {
  name        = %[1]q
  hosts       = ["%[3]s"]
  access_mode = %[2]q
  source      = { persistent_volume_claim = { namespace = "disks", claim_name = %[1]q } }
}
`, claim, mode, strings.Join(hosts, `", "`))
}

// disk is a disk on host-a; more is the rest of its attributes.
func disk(name, more string) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = "host-a"
  name       = %[1]q
  usage_type = "fast"
  %[2]s
}
`, name, more)
}

// over is the source of a copy of another volume.
func over(mode, of string) string {
	return fmt.Sprintf("copy_mode = %q\n  source = { volume = %s.volume }", mode, of)
}

// vm is the machine web on host-a with the given disks, each as HCL, and more attributes.
func vm(l *lab.Lab, console acctest.Console, cmdline, more string, disks ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "128Mi"
  machine = { type = "pc", domain_type = "qemu" }
  boot    = { kernel = %q, initrd = %q, cmdline = "%s %s" }
  serial  = { log_file = %q }
  disks = {
    %s
  }
  %s
}
`, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, cmdline, console.Path(), strings.Join(disks, "\n    "), more)
}

// bare is the machine web without an operating system. Stop it with suspendBare or destroyBare: its firmware ignores its power button.
func bare(more string, disks ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "pc", domain_type = "qemu" }
  force_stop = true
  disks = {
    %s
  }
  %s
}
`, strings.Join(disks, "\n    "), more)
}

// suspendBare has the next apply turn off the machine web without waiting for it: a suspended guest is not waited for.
func suspendBare(t *testing.T, l *lab.Lab) func() {
	t.Helper()
	return func() { virsh(t, l, "suspend", "web") }
}

// destroyBare is the last step of a test whose machine runs.
func destroyBare(t *testing.T, l *lab.Lab, config string) resource.TestStep {
	t.Helper()
	return resource.TestStep{PreConfig: suspendBare(t, l), Config: config, Destroy: true}
}

// starts checks that the machine web runs, and was started as often as want says: each time it has another domain id.
func starts(t *testing.T, l *lab.Lab) func(want int) resource.TestCheckFunc {
	t.Helper()
	ids := map[string]bool{}
	return func(want int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			id := strings.TrimSpace(virsh(t, l, "domid", "web"))
			if ids[id] = true; id == "-" || len(ids) != want {
				return fmt.Errorf("the machine, whose id is %s, was started %d times, not %d", id, len(ids), want)
			}
			return nil
		}
	}
}

// on is a disk of a machine.
func on(key, of, more string) string {
	return fmt.Sprintf("%s = { volume = %s.volume%s }", key, of, more)
}

// golden creates a claim whose storage has that content, and returns its read-shared binding on both hosts.
func golden(t *testing.T, l *lab.Lab, content string) (lab.LUN, string) {
	t.Helper()
	lun := acctest.LUN(t, l, false, content)
	acctest.Claim(t, l, "disks", "golden", lun)
	return lun, binding("golden", "read-shared", "host-a", "host-b")
}

// untouched fails the test unless the file has the same content at its end.
func untouched(t *testing.T, path string) {
	t.Helper()
	before := read(t, path)
	t.Cleanup(func() {
		if read(t, path) != before {
			t.Errorf("%s was written to", path)
		}
	})
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// file is the path of a volume on host-a.
func file(l *lab.Lab, name string) string {
	return filepath.Join(l.Hosts["host-a"].Dir, "pools", "ssd", name)
}

func planned(address string, action plancheck.ResourceActionType) plancheck.PlanCheck {
	return plancheck.ExpectResourceAction(address, action)
}

func pre(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: checks}
}

func virsh(t *testing.T, l *lab.Lab, args ...string) string {
	t.Helper()
	out, err := l.Hosts["host-a"].Virsh(context.Background(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// message matches an error that has those parts in that order; Terraform breaks its lines anywhere.
func message(parts ...string) *regexp.Regexp {
	for i, p := range parts {
		parts[i] = strings.Join(strings.Fields(regexp.QuoteMeta(p)), `[\s│]+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, `.*`))
}

// boots checks that the guest is ready after its nth boot, and was not booted again.
func boots(t *testing.T, c acctest.Console, n int) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		c.AwaitN(t, "READY", n)
		if got := c.Boots(); got != n {
			return fmt.Errorf("the guest has booted %d times, not %d", got, n)
		}
		return nil
	}
}
