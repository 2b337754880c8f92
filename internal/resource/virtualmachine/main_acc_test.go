//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// machine is a virtual machine's configuration in HCL, with the defaults of most tests.
type machine struct {
	name, host, memory, machineType, cmdline, log string
	// disks are HCL: key = { … }
	disks []string
	// more is HCL for further attributes.
	more string
	// idle leaves out what boots: the firmware has nothing to start, and ignores its power button and each unplug. Suspend such a machine before
	// it is shut down, because a suspended one is not waited for, but forced off at once.
	idle bool
}

func (m machine) hcl(l *lab.Lab) string {
	set := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	set(&m.name, "web")
	set(&m.host, "host-a")
	set(&m.memory, "128Mi")
	set(&m.machineType, "pc")
	if m.idle {
		return m.withoutBoot()
	}
	drives, floppies := 0, 0
	for _, d := range m.disks {
		drives += strings.Count(d, `device = "cdrom"`)
		floppies += strings.Count(d, `device = "floppy"`)
	}
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" %[1]q {
  name    = %[1]q
  host    = %[2]q
  memory  = %[3]q
  machine = { type = %[4]q, domain_type = "qemu" }
  boot = {
    kernel  = %[5]q
    initrd  = %[6]q
    cmdline = "%[13]s virtclaim.disks=%[7]d virtclaim.cdroms=%[12]d %[8]s"
  }
  disks = {
    %[9]s
  }
  serial = { log_file = %[10]q }
  %[11]s
}
`, m.name, m.host, m.memory, m.machineType, l.Guest.Kernel, l.Guest.Initrd, len(m.disks)-drives-floppies, m.cmdline,
		strings.Join(m.disks, "\n    "), m.log, m.more, drives, l.Guest.Parameters)
}

func (m machine) withoutBoot() string {
	return fmt.Sprintf(`
resource "virtclaim_virtual_machine" %[1]q {
  name       = %[1]q
  host       = %[2]q
  memory     = "32Mi"
  machine    = { type = %[3]q, domain_type = "qemu" }
  force_stop = true
  disks = {
    %[4]s
  }
  %[5]s
}
`, m.name, m.host, m.machineType, strings.Join(m.disks, "\n    "), m.more)
}

// running identifies a run of the machine web, which no other run of it has.
func running(t *testing.T, h *lab.Host) string {
	t.Helper()
	id := strings.TrimSpace(acctest.Must(h.Virsh(context.WithoutCancel(t.Context()), "domid", "web"))(t))
	if id == "" || id == "-" {
		t.Fatal("the machine web is off")
	}
	return id
}

// suspended suspends the machine web.
func suspended(t *testing.T, h *lab.Host) {
	t.Helper()
	acctest.Must(h.Virsh(context.WithoutCancel(t.Context()), "suspend", "web"))(t)
}

// claimBinding binds a claim of the same name for some hosts.
func claimBinding(namespace, claim, mode string, hosts ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" %[2]q {
  name        = %[2]q
  hosts       = ["%[3]s"]
  access_mode = %[4]q
  source      = { persistent_volume_claim = { namespace = %[1]q, claim_name = %[2]q } }
}
`, namespace, claim, strings.Join(hosts, `", "`), mode)
}

// disk is a disk with the volume of a binding.
func disk(key, binding, bus string) string {
	return fmt.Sprintf("%s = { volume = virtclaim_volume_binding.%s.volume, bus = %q }", key, binding, bus)
}
