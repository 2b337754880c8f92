package virtualmachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Each optional attribute can be left out, set later, and taken away again, without a replacement and without a second
// plan that differs.
func TestAccOptionalAttributesComeAndGo(t *testing.T) {
	l := acctest.Lab(t)
	config := func(more string) string {
		return acctest.Provider(l, "optional") + fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "web"
  memory  = "64Mi"
  running = false
  %s
}
`, more)
	}
	// Where a drive is depends on the type of the machine, which is libvirt's choice.
	drive := `disks = { seed = { device = "cdrom", ` +
		strings.TrimPrefix(handmade("seed", "read-shared", "ide", "", "host-b"), "seed = {\n      bus = \"ide\"") + ` }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(""),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(web, "machine.domain_type", "kvm"),
					resource.TestCheckResourceAttr(web, "machine.arch", "x86_64"),
					resource.TestCheckResourceAttrSet(web, "machine.type"),
					resource.TestCheckResourceAttr(web, "cpu.vcpus", "1"),
					resource.TestCheckNoResourceAttr(web, "disks.%")),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-b/web", ImportStateVerify: true},
			{
				Config: config(`
					machine    = { domain_type = "kvm" }
					cpu        = { vcpus = 3 }
					boot       = { kernel = "/boot/vmlinuz" }
					serial     = {}
					disks      = {}
					force_stop = true
					timeouts   = { delete = "2m" }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			},
			{
				Config: config(`
					boot   = { kernel = "/boot/vmlinuz", initrd = "/boot/initrd", cmdline = "a=b" }
					serial = { log_file = "/var/log/web.log" }
					disks  = { ` + handmade("root", "write-exclusive", "scsi", "boot_order = 1", "host-b") + ` }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			},
			{
				Config:           config(drive),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            resource.TestCheckResourceAttr(web, "disks.seed.bus", "ide"),
			},
			{
				Config:           config(`disks = { ` + handmade("root", "read-shared", "virtio", "", "host-b") + ` }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckNoResourceAttr(web, "boot.kernel"),
					resource.TestCheckNoResourceAttr(web, "serial.log_file")),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-b/web", ImportStateVerify: true},
			{Config: config(""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate)},
			{
				Config:           config(`machine = { type = "q35" }` + "\n" + drive),
				ConfigPlanChecks: planned(plancheck.ResourceActionReplace),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(web, "machine.type", "q35"),
					resource.TestCheckResourceAttr(web, "disks.seed.bus", "sata")),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-b/nobody", ExpectError: message("host-b", "nobody", "not found")},
			{ResourceName: web, ImportState: true, ImportStateId: "nobody", ExpectError: message("Invalid import id", "<host>/<name>")},
		},
	})
}

// A domain that was made by hand is imported as it is; adopting it changes nothing that its guest could notice.
func TestAccADomainMadeByHandIsImported(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	byHand := `<domain type='qemu'><name>web</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>
		<os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/></features>
		<devices>
			<disk type='file' device='cdrom'><target dev='hda' bus='ide'/></disk>
			<interface type='user'><mac address='52:54:00:12:34:56'/><model type='e1000'/></interface>
			<video><model type='cirrus'/></video><graphics type='vnc' port='-1' passwd='keep-me'/>
		</devices></domain>`
	config := acctest.Provider(l, "by-hand") + `
import {
  to = virtclaim_virtual_machine.web
  id = "host-b/web"
}
resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "web"
  memory  = "64Mi"
  cpu     = { vcpus = 2 }
  machine = { type = "pc", domain_type = "qemu" }
  interfaces = { net0 = { user = true, model = "e1000" } }
  running = false
}
`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			PreConfig: func() {
				if err := b.DefineXML(t.Context(), byHand); err != nil {
					t.Fatal(err)
				}
			},
			Config:           config,
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				xml, err := b.Virsh(t.Context(), "dumpxml", "--security-info", "web")
				acctest.Contains(t, xml, "passwd='keep-me'", "device='cdrom'", "type='cirrus'", "52:54:00:12:34:56", "ua-net-net0")
				return err
			},
		}},
	})
}
