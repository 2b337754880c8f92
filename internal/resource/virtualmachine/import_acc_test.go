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

// What a guest has open is noted when its domain is imported while it runs: a file that is deleted then is not replaced below it.
func TestAccVirtualMachine_ImportedWhileItRuns(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	virsh := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(acctest.Must(b.Virsh(t.Context(), args...))(t))
	}
	virsh("vol-create-as", "ssd", "theirs", "1MiB", "--format", "raw")
	if err := b.DefineXML(t.Context(), `<domain type='qemu'><name>by-hand</name><memory unit='MiB'>32</memory>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices><serial type='pty'/>
		<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='`+virsh("vol-path", "theirs", "--pool", "ssd")+`'/>
		<target dev='vda' bus='virtio'/></disk></devices></domain>`); err != nil {
		t.Fatal(err)
	}
	virsh("start", "by-hand")
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "import")+`
resource "virtclaim_disk" "data" {
  host       = "host-b"
  name       = "theirs"
  usage_type = "fast"
  size       = "1Mi"
  format     = "raw"
}

resource "virtclaim_virtual_machine" "web" {
  host       = "host-b"
  name       = "by-hand"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  serial     = {}
  force_stop = true
  timeouts   = { delete = "10s" }
  disks      = { vda = { volume = virtclaim_disk.data.volume } }
}
`)
	cli.Must("import", "-no-color", "virtclaim_disk.data", "host-b/ssd/theirs")
	cli.Must("import", "-no-color", "virtclaim_virtual_machine.web", "host-b/by-hand")
	cli.Must("apply", "-auto-approve", "-no-color")
	virsh("vol-delete", "theirs", "--pool", "ssd")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: Machine by-hand has a file of disk vda open that is gone")
	virsh("destroy", "by-hand")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
