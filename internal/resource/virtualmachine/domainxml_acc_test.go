//go:build acc

package virtualmachine_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// platform prints what a guest sees of its virtual hardware.
const platform = `
echo "VENDOR $(cat /sys/class/dmi/id/sys_vendor)"
echo "NODES $(ls -d /sys/devices/system/node/node* | wc -l)"
echo "AES $(grep -c -w aes /proc/cpuinfo) HYPERVISOR $(grep -c -w hypervisor /proc/cpuinfo) SVM $(grep -c -w svm /proc/cpuinfo)"
echo "CLOCK $(date +%s)"
`

// What domain_xml and the attributes beside it set is what QEMU has and the guest sees. A change outside of Terraform is drift, which the
// next apply repairs, and the running guest keeps what it has until it starts again.
func TestAccVirtualMachine_DomainXML(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	write := func(retries string) {
		cli.Write("main.tf", acctest.Provider(l, "tuned")+machine{
			cmdline: "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(platform)), log: console.Path(), more: `
  cpu = {
    vcpus = 2, model = "qemu64", features = { aes = "require", hypervisor = "disable", svm = "require" }, pin = { "0" = "0", "1" = "0-1" }
    emulator_pin = "1", shares = 2048
  }
  clock          = { offset = "localtime", timers = { hpet = { present = false }, rtc = { tickpolicy = "catchup" } } }
  memory_backing = { shared = true }
  on_reboot      = "destroy"
  on_crash       = "preserve"
  domain_xml = <<-EOT
    <metadata><my:note xmlns:my="https://example.org/note"><my:team>storage &amp; more</my:team></my:note></metadata>
    <features><vmport state="off"/><hyperv><relaxed state="on"/><spinlocks state="on" retries="` + retries + `"/></hyperv></features>
    <cpu><numa>
      <cell id="0" cpus="0" memory="64" unit="MiB"/><cell id="1" cpus="1" memory="64" unit="MiB"/>
    </numa></cpu>
    <sysinfo type="smbios"><system><entry name="manufacturer">Example Ltd</entry></system></sysinfo>
    <sysinfo type="fwcfg"><entry name="opt/com.example/token">a b</entry></sysinfo>
    <os><smbios mode="sysinfo"/><bootmenu enable="yes" timeout="100"/></os>
    <pm><suspend-to-mem enabled="no"/></pm>
  EOT
  force_stop = true`,
		}.hcl(l))
	}
	virsh := func(args ...string) string { return acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), args...))(t) }
	write("8191")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	console.Await(t, "CLOCK")
	acctest.Contains(t, console.Text(t), "VENDOR Example Ltd", "NODES 2", "AES 2 HYPERVISOR 0 SVM 2")
	acctest.Contains(t, virsh("qemu-monitor-command", "web", `{"execute":"qom-get","arguments":{"path":"/machine","property":"vmport"}}`),
		`"return":"off"`)
	acctest.Contains(t, virsh("qemu-monitor-command", "web", `{"execute":"query-memdev"}`), `"share":true`)
	acctest.Contains(t, virsh("domxml-to-native", "qemu-argv", "--domain", "web"), "opt/com.example/token,string=a b")
	acctest.Contains(t, virsh("vcpupin", "web", "--live"), " 0      0\n")
	acctest.Contains(t, virsh("emulatorpin", "web", "--live"), " *: 1\n")
	acctest.Contains(t, virsh("metadata", "web", "https://example.org/note"), "storage &amp; more")

	changed := strings.Replace(virsh("dumpxml", "--inactive", "--security-info", "web"), "retries='8191'", "retries='4095'", 1)
	file := filepath.Join(t.TempDir(), "changed.xml")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh("define", file)
	acctest.Contains(t, plan(t, cli), "domain_xml", "will be updated in-place")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, virsh("dumpxml", "--inactive", "web"), "retries='8191'")
	acctest.Contains(t, plan(t, cli), "No changes.")

	virsh("vcpupin", "web", "1", "1", "--live")
	acctest.Contains(t, plan(t, cli), `"1"`, `"1" -> "0-1"`)
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, virsh("vcpupin", "web", "--live"), " 1      0-1\n")
	cli.Replace("main.tf", `"1" = "0-1"`, `"1" = "900"`)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil {
		t.Errorf("a pin to a processor that the host lacks is taken:\n%s", out)
	}
	if stored := virsh("dumpxml", "--inactive", "web"); strings.Contains(stored, "900") {
		t.Errorf("it is stored:\n%s", stored)
	}

	write("6000")
	acctest.Contains(t, strings.Join(strings.Fields(cli.Must("apply", "-auto-approve", "-no-color")), " "),
		"takes effect at its next start", "domain_xml")
	acctest.Contains(t, virsh("dumpxml", "web"), "retries='8191'")
	cli.Must("destroy", "-auto-approve", "-no-color")

	cli.Write("main.tf", acctest.Provider(l, "tuned")+machine{log: console.Path(), more: "running = false\n  features = { hyperv = true }\n  clock = { timers = { hypervclock = { present = true } } }"}.hcl(l))
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	acctest.Contains(t, virsh("domxml-to-native", "qemu-argv", "--domain", "web"), "hv-spinlocks=0x1fff", "hv-stimer-direct=on", "hv-time=on", "hv-ipi=on")
	cli.Replace("main.tf", "hyperv = true", "hyperv = false")
	cli.Replace("main.tf", "running = false", "running = false\n  cpu = { vcpus = 1, shares = 512, period = 50000, quota = 40000 }")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, strings.Join(strings.Fields(virsh("schedinfo", "web", "--config")), " "), // the lab has no control groups
		"cpu_shares : 512 vcpu_period : 50000 vcpu_quota : 40000")
	if out := virsh("domxml-to-native", "qemu-argv", "--domain", "web"); strings.Contains(out, "hv-stimer") {
		t.Errorf("without enlightenments QEMU is given %s", out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
