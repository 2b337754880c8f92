//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// others are domains as other tools define them. POOL is the folder of a storage pool.
var others = map[string]string{
	"installed": `<metadata><libosinfo:libosinfo xmlns:libosinfo="http://libosinfo.org/xmlns/libvirt/domain/1.0">
    <libosinfo:os id="http://debian.org/debian/12"/></libosinfo:libosinfo></metadata>
  <memory unit='KiB'>65536</memory><currentMemory unit='KiB'>65536</currentMemory><vcpu>2</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>
  <features><acpi/><apic/></features>
  <cpu mode='host-model'/>
  <clock offset='utc'><timer name='rtc' tickpolicy='catchup'/><timer name='pit' tickpolicy='delay'/><timer name='hpet' present='no'/></clock>
  <pm><suspend-to-mem enabled='no'/><suspend-to-disk enabled='no'/></pm>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2' discard='unmap'/><source file='POOL/installed'/>
      <target dev='vda' bus='virtio'/></disk>
    <controller type='usb' model='qemu-xhci' ports='15'/>
    <controller type='pci' model='pcie-root'/>
    <controller type='pci' model='pcie-root-port'/><controller type='pci' model='pcie-root-port'/>
    <interface type='network'><source network='red'/><mac address='52:54:00:00:22:01'/><model type='virtio'/></interface>
    <console type='pty'/>
    <channel type='unix'><source mode='bind'/><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>
    <input type='tablet' bus='usb'/>
    <graphics type='spice' autoport='yes'><listen type='address'/><image compression='off'/></graphics>
    <sound model='ich9'/>
    <video><model type='virtio'/></video>
    <redirdev bus='usb' type='spicevmc'/><redirdev bus='usb' type='spicevmc'/>
    <memballoon model='virtio'/>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
  </devices>`,
	"managed": `<memory unit='KiB'>65536</memory><vcpu placement='static' current='1'>2</vcpu>
  <os firmware='efi'><type arch='x86_64' machine='q35'>hvm</type>
    <firmware><feature enabled='no' name='enrolled-keys'/><feature enabled='no' name='secure-boot'/></firmware></os>
  <features><acpi/><apic/><vmport state='off'/></features>
  <cpu mode='maximum' check='none' migratable='on'/>
  <devices>
    <disk type='file' device='cdrom'><driver name='qemu' type='raw'/><target dev='sda' bus='sata'/><readonly/></disk>
    <interface type='network'><mac address='52:54:00:00:22:02'/><source network='blue'/><model type='virtio'/><link state='down'/></interface>
    <interface type='bridge'><mac address='52:54:00:00:22:03'/><source bridge='BRIDGE'/><model type='e1000e'/></interface>
    <serial type='pty'><target type='isa-serial' port='0'/></serial>
    <tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>
    <graphics type='vnc' port='-1' autoport='yes'/>
    <video><model type='bochs'/></video>
    <watchdog model='i6300esb' action='poweroff'/>
  </devices>`,
	"cockpit": `<memory unit='KiB'>65536</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os><features><acpi/><apic/></features>
  <devices>
    <disk type='volume' device='disk'><driver name='qemu' type='qcow2' cache='writeback'/><source pool='ssd' volume='cockpit'/>
      <target dev='vda' bus='virtio'/><boot order='1'/></disk>
    <disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='POOL/cockpit-seed'/>
      <target dev='sda' bus='sata'/><readonly/></disk>
    <interface type='user'><mac address='52:54:00:00:22:04'/><model type='virtio'/><boot order='2'/></interface>
    <graphics type='vnc' port='-1' autoport='yes' listen='127.0.0.1'/>
    <graphics type='spice' port='-1' autoport='yes' listen='127.0.0.1'/>
  </devices>`,
	"devices": `<title>With devices</title><memory unit='KiB'>65536</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='raw' io='threads' queue_size='256'/><source file='POOL/devices'/>
      <target dev='sda' bus='scsi'/><serial>4711</serial></disk>
    <controller type='scsi' index='0' model='virtio-scsi'><driver queues='2'/></controller>
    <filesystem type='mount' accessmode='mapped'><source dir='POOL'/><target dir='shared'/><readonly/></filesystem>
    <serial type='pty'><log file='POOL/devices.log' append='off'/></serial><serial type='pty'/>
    <console type='pty'><target type='virtio'/></console>
    <hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product id='0xbeef'/></source></hostdev>
    <hostdev mode='subsystem' type='usb'><source startupPolicy='optional'><vendor id='0x1234'/><product id='0xbeea'/></source></hostdev>
  </devices>`,
	"snapshot": `<memory unit='KiB'>131072</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type><kernel>KERNEL</kernel><initrd>INITRD</initrd><cmdline>CMDLINE virtclaim.disks=1</cmdline></os>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='POOL/snapshot'/><target dev='vda' bus='virtio'/></disk>
    <serial type='pty'><log file='LOG' append='off'/></serial>
    <memballoon model='none'/>
  </devices>`,
}

// lostOf are what the import of one of the others names, because a replacement loses it.
var lostOf = map[string]string{
	"cockpit": "all but the first graphics",
	"devices": "all but the first serial, controller scsi/driver, disk sda/driver/@queue_size, filesystem shared/@accessmode, " +
		"serial/log/@append",
	"installed": "controller usb, graphics/image",
	"managed":   "cpu/@migratable, disk sda",
	"snapshot":  "serial/log/@append",
}

// elsewhere are facts that a replacement says in another way: where a disk is, the ports of consoles, and the sound of a lost display.
var elsewhere = []string{"disk/@type", "disk/source/@pool", "disk/source/@volume", "console", "audio/@type"}

var (
	// plain matches what a path has beside the names of elements: which device it is.
	plain = regexp.MustCompile(`^all but the first |(^\w+) [^/]+`)
	// attribute matches one in a line of elementsOf.
	attribute = regexp.MustCompile(`\{\{\S* ([^}]*)\} ([^}]*)\}`)
)

// gone are the elements, attributes and texts that a definition had, and has not any more.
func gone(before, after []string) (all []string) {
	facts := func(lines []string) map[string]int {
		count := map[string]int{}
		for _, line := range lines {
			at, rest, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
			at = strings.ReplaceAll(at, " ", "/")
			for _, a := range attribute.FindAllStringSubmatch(rest, -1) {
				count[at+"/@"+a[1]+"="+a[2]]++
			}
			if attribute.MatchString(rest) {
				rest = ""
			}
			count[at+rest]++
		}
		return count
	}
	now := facts(after)
	for fact, n := range facts(before) {
		if now[fact] < n {
			all = append(all, fact)
		}
	}
	return all
}

// other prepares one of the others, and the volumes of its disks.
func other(t *testing.T, l *lab.Lab, h *lab.Host, console acctest.Console, name string) (definition string) {
	t.Helper()
	virsh := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(acctest.Must(h.Virsh(context.WithoutCancel(t.Context()), args...))(t))
	}
	volumes := []string{name}
	if format := map[string]string{"installed": "qcow2", "cockpit": "qcow2", "snapshot": "qcow2", "devices": "raw"}[name]; format != "" {
		args := []string{"vol-create-as", "ssd", name, "1MiB", "--format", format}
		if format == "qcow2" {
			virsh("vol-create-as", "ssd", name+"-base", "1MiB", "--format", "qcow2")
			virsh("vol-create-as", "ssd", name+"-seed", "1MiB", "--format", "raw")
			args, volumes = append(args, "--backing-vol", name+"-base", "--backing-vol-format", "qcow2"), append(volumes, name+"-base", name+"-seed")
		}
		virsh(args...)
		t.Cleanup(func() {
			for _, v := range volumes {
				virsh("vol-delete", v, "--pool", "ssd")
			}
		})
	}
	values := strings.NewReplacer("POOL", filepath.Join(h.Pools, "ssd"), "BRIDGE", lab.Bridge, "KERNEL", l.Guest.Kernel, "INITRD", l.Guest.Initrd,
		"CMDLINE", l.Guest.Parameters, "LOG", console.Path())
	return "<domain type='qemu'><name>" + name + "</name>" + values.Replace(others[name]) + "</domain>"
}

// Domains that others have defined are imported, off or running, with a configuration that Terraform generates: it plans empty, an apply
// changes nothing that their guests see, and a replacement loses nothing but what the import has named.
func TestAccVirtualMachine_ImportsOthers(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		t.Run(name, func(t *testing.T) { testImportOfOther(t, name) })
	}
}

func testImportOfOther(t *testing.T, name string) {
	t.Helper()
	l := acctest.Lab(t)
	h := acctest.Must(l.NetworkedHost(t.Context()))(t)
	console := acctest.NewConsole(t)
	if err := h.DefineXML(t.Context(), other(t, l, h, console, name)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = h.Virsh(context.Background(), "destroy", name)
			_, _ = h.Virsh(context.Background(), "undefine", name, "--nvram", "--snapshots-metadata")
		}
	})
	virsh := func(args ...string) string {
		t.Helper()
		return acctest.Must(h.Virsh(t.Context(), args...))(t)
	}
	runs := name == "snapshot"
	const bootID = "cat /proc/sys/kernel/random/boot_id"
	booted := ""
	if runs {
		virsh("start", name)
		console.Await(t, "READY")
		booted = acctest.Must(h.Shell(t.Context(), name, bootID))(t)
		virsh("snapshot-create-as", name, "nightly", "--disk-only")
	}
	before := virsh("dumpxml", "--inactive", name)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", fmt.Sprintf(`
provider "virtclaim" {
  owner = "others"
  hosts = { %[1]s = { uri = %[2]q } }
}

import {
  to = virtclaim_virtual_machine.it
  id = "%[1]s/%[3]s"
}
`, h.Name, h.URI, name))
	out := joined(cli.Must("plan", "-no-color", "-generate-config-out=it.tf"))
	acctest.Contains(t, out, "1 to import, 0 to add, 0 to change, 0 to destroy")
	acctest.Contains(t, out, "has no attributes for: "+lostOf[name]+". It stays")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	if runs {
		if now := acctest.Must(h.Shell(t.Context(), name, bootID))(t); now != booted || booted == "" {
			t.Errorf("the guest has booted again: its id was %q, and is %q", booted, now)
		}
		virsh("snapshot-delete", name, "nightly", "--metadata")
		virsh("destroy", name)
		_ = os.Remove(filepath.Join(h.Pools, "ssd", name+".nightly"))
	} else {
		cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_virtual_machine.it")
		acctest.Contains(t, plan(t, cli), "No changes.")
		for _, fact := range gone(elementsOf(t, before), elementsOf(t, virsh("dumpxml", "--inactive", name))) {
			if !slices.ContainsFunc(append(strings.Split(lostOf[name], ", "), elsewhere...), func(named string) bool {
				return strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(fact, "domain/"), "devices/"), plain.ReplaceAllString(named, "$1"))
			}) {
				t.Errorf("the replacement lacks %s, which the import has not named", fact)
			}
		}
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
