//go:build acc

package function_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const overlay = `
resource "virtclaim_volume_binding" "master" {
  name        = "master"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = "functions", claim_name = "master" } }
}

resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  copy_mode  = "copy-on-write"
  source     = { volume = virtclaim_volume_binding.master.volume }
}

output "element" {
  value = provider::virtclaim::disk_xml(virtclaim_disk.data.volume)
}
`

// A domain that others define opens an overlay on storage with a password by the element. The guard sees that domain when a machine is to
// use the disk, too, and when the disk is to be removed.
func TestAccDiskXML_IsOpened(t *testing.T) {
	l := acctest.Lab(t)
	host, console := l.Hosts["host-a"], acctest.NewConsole(t)
	lun := acctest.LUN(t, l, true, "of the master")
	acctest.Claim(t, l, "functions", "master", lun)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "functions")+overlay)
	cli.Must("apply", "-auto-approve", "-no-color")
	if err := host.DefineXML(t.Context(), fmt.Sprintf(`<domain type='qemu'>
  <name>foreign</name><memory unit='MiB'>128</memory>
  <os><type arch='x86_64' machine='pc'>hvm</type><kernel>%s</kernel><initrd>%s</initrd>
    <cmdline>%s virtclaim.disks=1 virtclaim.run=%s</cmdline></os>
  <features><acpi/></features>
  <devices>%s<serial type='null'><log file='%s' append='off'/></serial></devices>
</domain>`, l.Guest.Kernel, l.Guest.Initrd, l.Guest.Parameters, base64.StdEncoding.EncodeToString([]byte(shows)),
		cli.Must("output", "-raw", "element"), console.Path())); err != nil {
		t.Fatal(err)
	}
	acctest.Must(host.Virsh(t.Context(), "start", "foreign"))(t)
	acctest.Contains(t, console.Await(t, "DISK vda "), "ro=0", "first=of the master")
	console.Await(t, "READY")

	machine := "\nresource \"virtclaim_virtual_machine\" \"web\" {\n  host   = \"host-a\"\n  name   = \"web\"\n  memory = \"128Mi\"\n" +
		"  disks  = { vda = { volume = virtclaim_disk.data.volume } }\n  machine = { domain_type = \"qemu\" }\n}\n"
	cli.Write("machine.tf", machine)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !strings.Contains(out, "domain foreign") {
		t.Errorf("a second writer is not refused: %v\n%s", err, out)
	}
	acctest.Must(host.Virsh(t.Context(), "destroy", "foreign"))(t)
	if out, err := cli.Run("destroy", "-auto-approve", "-no-color"); err == nil || !strings.Contains(out, "domain foreign") {
		t.Errorf("the disk of a domain is removed: %v\n%s", err, out)
	}
	acctest.Must(host.Virsh(t.Context(), "undefine", "foreign"))(t)
	if has := acctest.StoredAt(t, lun.Path, 4096, 7); strings.Contains(has, "written") {
		t.Errorf("the master has %q", has)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
