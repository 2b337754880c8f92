//go:build acc

package virtualmachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A machine whose devices of the host are missing is refused, by the plan and before an apply changes anything, unless it stays off: libvirt
// takes each spelling of such a device. QEMU has no balloon where that is configured, and libvirt's own again without it.
func TestAccVirtualMachine_HostDevices(t *testing.T) {
	l := acctest.Lab(t)
	h := l.Hosts["host-a"]
	cli := acctest.NewCLI(t)
	write := func(more, devices string) {
		t.Helper()
		cli.Write("main.tf", acctest.Provider(l, "hardware")+machine{
			machineType: "q35", idle: true, more: more + "\n  devices_xml = <<-EOT\n    " + devices + "\n  EOT\n",
		}.hcl(l))
	}
	apply := func(more, devices string) {
		t.Helper()
		write(more, devices)
		cli.Must("apply", "-auto-approve", "-no-color")
		cli.Must("plan", "-no-color", "-detailed-exitcode") // an error if there are changes
	}
	virsh := func(args ...string) string {
		t.Helper()
		return acctest.Must(h.Virsh(t.Context(), args...))(t)
	}
	refused := func(devices string, parts ...string) {
		t.Helper()
		for _, c := range []struct{ text, command, flag string }{
			{devices, "plan", "-input=false"}, {"${terraform_data.late.output}", "apply", "-auto-approve"},
		} {
			write("", c.text)
			cli.Write("late.tf", fmt.Sprintf("resource \"terraform_data\" \"late\" {\n  input            = %[1]q\n  triggers_replace = %[1]q\n}\n", devices))
			out, err := cli.Run(c.command, c.flag, "-no-color")
			if err == nil {
				t.Errorf("%s takes %s", c.command, devices)
			}
			acctest.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "), parts...)
		}
	}
	const (
		pci  = "<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0' bus='0xfe' slot='0x1f' function='0'/></source></hostdev>"
		usb  = "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/><product id='0xbeef'/></source></hostdev>"
		both = "<hostdev mode='subsystem' type='usb'><source><vendor id='0x1235'/><product id='0xbeef'/><address bus='9' device='9'/></source></hostdev>"
		mdev = "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='c2177883-f1bb-47f0-914d-32a22e3a8804'/></source></hostdev>"
	)
	refused(pci, "Host host-a has no PCI device 0000:fe:1f.0. It has ", "virtclaim_host")
	refused(usb, "Host host-a has no USB device 1234:beef. It has none of that kind.")
	refused(mdev, "Host host-a has no mediated device c2177883-f1bb-47f0-914d-32a22e3a8804. It has none of that kind.")
	there := strings.Fields(virsh("nodedev-list", "--cap", "pci"))
	if len(there) == 0 {
		t.Fatal("the host lists no PCI device")
	}
	address := strings.Split(strings.TrimPrefix(there[0], "pci_"), "_")
	write("", strings.NewReplacer("domain='0'", "domain='0x"+address[0]+"'", "0xfe", "0x"+address[1], "0x1f", "0x"+address[2],
		"function='0'", "function='0x"+address[3]+"'").Replace(pci))
	cli.Must("plan", "-no-color")

	apply("running = false", pci+usb+both+mdev+"<vsock model='virtio'><cid auto='yes'/></vsock><memballoon model='none'/>")
	acctest.Contains(t, virsh("dumpxml", "--inactive", "web"), "<vendor id='0x1234'/>", "<address bus='9' device='9'/>", "ua-xml-3", "<cid auto='yes'/>",
		"<memballoon model='none'/>")

	balloon := func(want bool) {
		t.Helper()
		if tree := virsh("qemu-monitor-command", "--hmp", "web", "info qtree"); strings.Contains(tree, "virtio-balloon") != want || !strings.Contains(tree, "pcie-root-port") {
			t.Errorf("a balloon is there: %v in\n%s", !want, tree)
		}
	}
	restart := func(more, devices string) {
		t.Helper()
		virsh("destroy", "web")
		apply(more, devices)
	}
	apply("", "<memballoon model='none'/>")
	balloon(false)
	refused("<memballoon model='none'/>"+usb, "Host host-a has no USB device 1234:beef")
	restart("", "<memballoon model='virtio' freePageReporting='on'><stats period='7'/></memballoon>")
	balloon(true)
	acctest.Contains(t, virsh("dumpxml", "web"), "freePageReporting='on'", "<stats period='7'/>")
	restart("", "<input type='tablet' bus='usb'/>")
	balloon(true)
	suspended(t, h)
	cli.Must("destroy", "-auto-approve", "-no-color")
}
