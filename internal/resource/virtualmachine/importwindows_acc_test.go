//go:build acc

package virtualmachine_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// windows is a domain as tools for virtual machines define one for Windows, with what people add to it.
const windows = `<domain type='qemu'>
  <name>windows</name>
  <metadata>
    <libosinfo:libosinfo xmlns:libosinfo="http://libosinfo.org/xmlns/libvirt/domain/1.0">
      <libosinfo:os id="http://microsoft.com/win/11"/>
    </libosinfo:libosinfo>
  </metadata>
  <memory unit='MiB'>64</memory>
  <vcpu>2</vcpu>
  <cputune><shares>2048</shares><vcpupin vcpu='0' cpuset='0'/><emulatorpin cpuset='0-1'/></cputune>
  <sysinfo type='smbios'><oemStrings><entry>key=value</entry></oemStrings></sysinfo>
  <os firmware='efi'>
    <type arch='x86_64' machine='q35'>hvm</type>
    <firmware><feature enabled='yes' name='enrolled-keys'/><feature enabled='yes' name='secure-boot'/></firmware>
    <bootmenu enable='yes'/>
    <smbios mode='sysinfo'/>
  </os>
  <features>
    <acpi/><apic/>
    <hyperv mode='custom'>
      <relaxed state='on'/><vapic state='on'/><spinlocks state='on' retries='4095'/><vendor_id state='on' value='example'/>
    </hyperv>
    <kvm><hidden state='on'/></kvm>
    <vmport state='off'/>
  </features>
  <cpu mode='host-model'><topology sockets='1' dies='1' cores='2' threads='1'/><feature policy='disable' name='svm'/></cpu>
  <clock offset='localtime'>
    <timer name='rtc' tickpolicy='catchup'/><timer name='pit' tickpolicy='delay'/><timer name='hpet' present='no'/>
    <timer name='hypervclock' present='yes'/>
  </clock>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>preserve</on_crash>
  <pm><suspend-to-mem enabled='no'/><suspend-to-disk enabled='no'/></pm>
  <devices>
    <interface type='user'><mac address='52:54:00:00:11:22'/><model type='e1000e'/></interface>
    <serial type='pty'/>
    <channel type='spicevmc'><target type='virtio' name='com.redhat.spice.0'/></channel>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <input type='tablet' bus='usb'/>
    <tpm model='tpm-crb'><backend type='emulator' version='2.0'/></tpm>
    <graphics type='spice' autoport='yes' listen='127.0.0.1'/>
    <sound model='ich9'/>
    <video><model type='qxl'/></video>
    <redirdev bus='usb' type='spicevmc'/>
    <panic model='hyperv'/>
    <vsock model='virtio'><cid auto='yes'/></vsock>
    <memballoon model='virtio' autodeflate='on'><stats period='5'/></memballoon>
  </devices>
</domain>`

// A domain for Windows that others have defined is imported with a configuration that Terraform generates, plans empty, and is the same
// after a replacement, but for what is random or libvirt's choice.
func TestAccVirtualMachine_ImportsWindows(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	if err := b.DefineXML(t.Context(), windows); err != nil {
		t.Fatal(err)
	}
	before := acctest.Must(b.Virsh(t.Context(), "dumpxml", "windows"))(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "import")+`
import {
  to = virtclaim_virtual_machine.windows
  id = "host-b/windows"
}
`)
	out := cli.Must("plan", "-no-color", "-generate-config-out=windows.tf")
	acctest.Contains(t, out, "1 to import, 0 to add, 0 to change, 0 to destroy")
	if strings.Contains(out, "Not all of the machine") {
		t.Errorf("something has no attribute:\n%s", out)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	cli.Must("apply", "-auto-approve", "-no-color", "-replace=virtclaim_virtual_machine.windows")
	acctest.Contains(t, plan(t, cli), "No changes.")
	after := acctest.Must(b.Virsh(t.Context(), "dumpxml", "windows"))(t)
	if diff := cmp.Diff(elementsOf(t, before), elementsOf(t, after)); diff != "" {
		t.Errorf("-before +after the replacement:\n%s", diff)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// elementsOf are the elements of a definition with their attributes and texts, in the order of the alphabet, without what identifies the
// domain, and where libvirt places it and its devices.
func elementsOf(t *testing.T, definition string) (all []string) {
	t.Helper()
	var at []string
	dec := xml.NewDecoder(strings.NewReader(definition))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			slices.Sort(all)
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			placed := slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == "type" })
			isPCI := slices.ContainsFunc(e.Attr, func(a xml.Attr) bool { return a.Value == "pci" })
			switch name := e.Name.Local; {
			case slices.Contains([]string{"uuid", "machine", "alias", "nvram"}, name), name == "address" && placed, name == "controller" && isPCI:
				if err := dec.Skip(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			at = append(at, e.Name.Local)
			all = append(all, fmt.Sprint(at, e.Attr))
		case xml.EndElement:
			at = at[:len(at)-1]
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" {
				all = append(all, fmt.Sprint(at, text))
			}
		}
	}
}
