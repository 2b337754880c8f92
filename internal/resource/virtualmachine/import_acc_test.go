package virtualmachine_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A domain that was made by hand is imported while it runs, with a warning of what has no attribute; where the configuration says
// what is in state, there is nothing to change.
func TestAccAnImportTellsWhatItCanNotDescribe(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	if err := b.DefineXML(t.Context(), `<domain type='qemu'><name>by-hand</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><cputune><shares>2048</shares></cputune>
		<devices><serial type='pty'/><sound model='ich9'/><hub type='usb'/></devices></domain>`); err != nil {
		t.Fatal(err)
	}
	acctest.Must(b.Virsh(t.Context(), "start", "by-hand"))(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "import")+`
resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "by-hand"
  memory  = "64Mi"
  cpu     = { vcpus = 2 }
  machine = { type = "q35", domain_type = "qemu" }
  serial  = {}
}
`)
	out := cli.Must("import", "-no-color", "virtclaim_virtual_machine.web", "host-b/by-hand")
	acctest.Contains(t, strings.Join(strings.Fields(out), " "), "Not all of the machine can be described here", "cputune, hub, sound.")
	if out, err := cli.Run("plan", "-detailed-exitcode", "-no-color"); err != nil {
		t.Errorf("the plan of what is there is not empty: %v\n%s", err, out)
	}
	acctest.Must(b.Virsh(t.Context(), "destroy", "by-hand"))(t) // it has nothing to boot, and so no guest to shut down
	cli.Must("destroy", "-auto-approve", "-no-color")
}
