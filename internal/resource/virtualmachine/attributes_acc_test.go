//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Each optional attribute can be left out, set later, and removed again, without a replacement and with an empty second plan.
func TestAccVirtualMachine_OptionalAttributes(t *testing.T) {
	l := acctest.Lab(t)
	kind := "kvm" // the default, which needs the device, although no guest is started
	if _, err := os.Stat("/dev/kvm"); err != nil {
		kind = "qemu"
	}
	config := func(more string) string {
		if kind == "qemu" && !strings.Contains(more, "machine ") {
			more += "\nmachine = {}"
		}
		if kind == "qemu" {
			more = strings.Replace(more, "machine = {", "machine = { domain_type = \"qemu\", ", 1)
		}
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
	// The place of a drive depends on the machine type, which libvirt chooses.
	drive := `disks = { seed = { device = "cdrom", ` +
		strings.TrimPrefix(handmade("seed", "read-shared", "ide", "", "host-b"), "seed = {\n      bus = \"ide\"") + ` }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(`machine = { hotplug_ports = 3 }`), ExpectError: message("No PCI Express ports", "q35")},
			{
				Config: config(""),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr(web, "machine.domain_type", kind),
					resource.TestCheckResourceAttr(web, "machine.arch", "x86_64"),
					resource.TestCheckResourceAttrSet(web, "machine.type"),
					resource.TestCheckResourceAttr(web, "cpu.vcpus", "1"),
					resource.TestCheckNoResourceAttr(web, "disks.%")),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-b/web", ImportStateVerify: true},
			{
				Config: config(`
					machine    = { domain_type = "` + kind + `" }
					cpu        = { vcpus = 3, max_vcpus = 3, mode = "host-model" }
					max_memory = "65536Ki"
					title      = "the web"
					autostart  = true
					boot       = { kernel = "/boot/vmlinuz" }
					serial     = {}
					disks      = {}
					force_stop = true
					timeouts   = { delete = "2m" }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			},
			{
				Config: config(`
					cpu    = { vcpus = 1, max_vcpus = 4, mode = "custom", model = "pentium3", topology = { sockets = 1, dies = 1, cores = 2, threads = 2 } }
					max_memory  = "128Mi"
					description = "serves pages\nand <more>"
					boot   = { kernel = "/boot/vmlinuz", initrd = "/boot/initrd", cmdline = "a=b" }
					serial = { log_file = "/var/log/web.log" }
					disks  = { ` + handmade("root", "write-exclusive", "scsi", "boot_order = 1", "host-b") + ` }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			},
			{
				Config:           config(drive + "\ncpu = { vcpus = 2, model = \"pentium2\" }"),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            resource.TestCheckResourceAttr(web, "disks.seed.bus", "ide"),
			},
			{
				Config: config(`
					firmware    = { type = "efi" }
					tpm         = { model = "tpm-tis", version = "1.2" }
					graphics    = { type = "vnc", listen = "::1", port = 5999 }
					video       = { model = "vga", vram = 8192, heads = 1 }
					rng         = { source = "/dev/random" }
					watchdog    = { model = "ib700", action = "pause" }
					console     = {}
					filesystems = { a = { source = "/srv", target = "data" }, b = { source = "/srv", driver = "9p" } }
					devices_xml = "<sound model='ac97'/><panic model='isa'/><input type='keyboard' bus='virtio'/>"
					disks       = { ` + handmade("root", "read-shared", "virtio", "", "host-b") + ` }`),
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
			{
				Config:           config(`machine = { type = "q35", hotplug_ports = 16 }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            ports(l, 16),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-b/web", ImportStateVerify: true},
			{
				Config:           config(`machine = { type = "q35", hotplug_ports = 5 }`),
				ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
				Check:            ports(l, 5),
			},
			{ResourceName: web, ImportState: true, ImportStateId: "host-b/nobody", ExpectError: message("host-b", "nobody", "not found")},
			{ResourceName: web, ImportState: true, ImportStateId: "nobody", ExpectError: message("Invalid import id", "<host>/<name>")},
		},
	})
}

// ports checks the number of the machine's PCI Express ports, of which its balloon has one.
func ports(l *lab.Lab, want int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		xml, err := l.Hosts["host-b"].Virsh(context.Background(), "dumpxml", "web")
		if got := strings.Count(xml, "model='pcie-root-port'"); got != want || err != nil {
			return fmt.Errorf("it has %d ports, not %d: %w", got, want, err)
		}
		return nil
	}
}

// A domain that was not created by virtclaim is imported as it is; adopting it changes nothing that its guest could notice.
func TestAccVirtualMachine_ImportOfUnmanagedDomain(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	byHand := `<domain type='qemu'><name>web</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>
		<os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/></features>
		<devices>
			<disk type='file' device='cdrom'><target dev='hda' bus='ide'/></disk>
			<interface type='user'><mac address='52:54:00:12:34:56'/><model type='e1000'/></interface>
			<video><model type='cirrus'/></video><graphics type='vnc' port='-1' passwd='keep-me' keymap='de'/>
			<rng model='virtio'><backend model='random'>/dev/random</backend></rng><watchdog model='ib700' action='pause'/>
			<tpm><backend type='emulator' version='2.0'/></tpm><sound model='ac97'/>
			<filesystem><source dir='/srv'/><target dir='files'/></filesystem>
		</devices></domain>`
	resourceOnly := acctest.Provider(l, "by-hand") + `
resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "web"
  memory  = "64Mi"
  cpu     = { vcpus = 2 }
  machine = { type = "pc", domain_type = "qemu" }
  interfaces = { net0 = { user = true, model = "e1000" } }
  running = false

  graphics    = { type = "vnc" }
  tpm         = {}
  rng         = { source = "/dev/random" }
  filesystems = { files = { source = "/srv", driver = "9p" } }
  devices_xml = "<sound model='ac97'/>"
}
`
	config := resourceOnly + `
import {
  to = virtclaim_virtual_machine.web
  id = "host-b/web"
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
			Config:       resourceOnly,
			ResourceName: web, ImportState: true, ImportStateId: "host-b/web",
			ImportStateCheck: func(states []*terraform.InstanceState) error {
				for name, want := range map[string]string{
					"graphics.type": "vnc", "graphics.listen": "127.0.0.1", "graphics.password_wo": "", "graphics.password_wo_version": "",
					"video.model": "cirrus", "video.heads": "1", "rng.source": "/dev/random", "watchdog.model": "ib700", "watchdog.action": "pause",
					"tpm.version": "2.0", "tpm.model": "tpm-tis", "filesystems.files.source": "/srv", "filesystems.files.driver": "9p",
				} {
					if got := states[0].Attributes[name]; got != want {
						return fmt.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				return nil
			},
		}, {
			Config:           config,
			ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				xml, err := b.Virsh(t.Context(), "dumpxml", "--security-info", "web")
				acctest.Contains(t, xml, "passwd='keep-me'", "device='cdrom'", "keymap='de'", "model='ac97'", "model='tpm-tis'", "52:54:00:12:34:56", "ua-net-net0")
				if strings.Contains(xml, "ib700") {
					t.Error("the watchdog is there, although the configuration has none")
				}
				return err
			},
		}},
	})
}
