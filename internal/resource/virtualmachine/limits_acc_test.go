//go:build acc

package virtualmachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// limitedMachine has no guest, which none of this asks.
const limitedMachine = `
resource "virtclaim_virtual_machine" "web" {
  host       = %q
  name       = "web"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  force_stop = true
  %s
}
`

// QEMU has all limits of a disk, of one that is plugged in, too; they change and go while it runs, and limits that were set by hand are put
// right. What can't change live, QEMU has from its start.
func TestAccVirtualMachine_LimitedDisks(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	write := func(body string) {
		text := acctest.Provider(l, "limits")
		for _, name := range []string{"data", "ssd", "more"} {
			text += fmt.Sprintf("resource \"virtclaim_disk\" %[1]q {\n  host = \"host-a\"\n  name = %[1]q\n  usage_type = \"fast\"\n  size = \"1Mi\"\n  format = \"raw\"\n}\n", name)
		}
		cli.Write("main.tf", text+fmt.Sprintf(limitedMachine, "host-a", "disks = {\n"+body+"\n}"))
	}
	qemu := func(command string) string {
		t.Helper()
		return acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "qemu-monitor-command", "web", "--hmp", command))(t)
	}
	throttled := func(disk string, parts ...string) {
		t.Helper()
		for _, node := range strings.Split(qemu("info block -v"), "\r\n\r\n") {
			if strings.Contains(node, "/ua-disk-"+disk+"/") {
				acctest.Contains(t, node, parts...)
				return
			}
		}
		t.Errorf("QEMU has no disk %s: %s", disk, qemu("info block"))
	}
	const ssd = `ssd = { volume = virtclaim_disk.ssd.volume, bus = "scsi", wwn = "5000c50015ea71ab", rotation_rate = 1, detect_zeroes = "on", vendor = "SEAGATE", product = "ST3146707LC" }`
	data := func(limits string) string {
		return "data = { volume = virtclaim_disk.data.volume, queues = 2, detect_zeroes = \"unmap\", discard = \"unmap\"\n" + limits + "}"
	}
	const each = `iotune = {
    read_bytes_sec = 1000000, read_bytes_sec_max = 2000000, read_bytes_sec_max_length = 2
    write_bytes_sec = 3000000, write_bytes_sec_max = 4000000, write_bytes_sec_max_length = 3
    read_iops_sec = 100, read_iops_sec_max = 200, read_iops_sec_max_length = 4
    write_iops_sec = 300, write_iops_sec_max = 400, write_iops_sec_max_length = 5, size_iops_sec = 4096
  }`
	const all = `iotune = { total_bytes_sec = 5000000, total_bytes_sec_max = 6000000, total_bytes_sec_max_length = 2
    total_iops_sec = 500, total_iops_sec_max = 600, total_iops_sec_max_length = 3 }`
	ofEach := []string{
		"bps=0 bps_rd=1000000 bps_wr=3000000 ", "bps_rd_max=2000000 bps_wr_max=4000000 ", "iops=0 iops_rd=100 iops_wr=300 ",
		"iops_rd_max=200 iops_wr_max=400 ", "iops_size=4096",
	}
	ofAll := []string{"bps=5000000 bps_rd=0 bps_wr=0 bps_max=6000000 ", "iops=500 iops_rd=0 iops_wr=0 iops_max=600 "}
	apply := func() {
		t.Helper()
		cli.Must("apply", "-auto-approve", "-no-color")
		acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes")
	}
	write(data(each) + "\n" + ssd)
	apply()
	before := running(t, l.Hosts["host-a"])
	throttled("data", ofEach...)
	throttled("data", "unmap")
	tree := qemu("info qtree")
	acctest.Contains(t, tree, "num-queues = 2 ", "wwn = 5764824127192592811", "rotation_rate = 1 ",
		`vendor = "SEAGATE"`, `product = "ST3146707LC"`)

	write(data(all) + "\n" + ssd + "\nmore = { volume = virtclaim_disk.more.volume, queues = 3\n" + each + "}")
	apply()
	throttled("data", ofAll...)
	throttled("more", ofEach...)
	acctest.Contains(t, qemu("info qtree"), "num-queues = 3 ")
	lengths := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "qemu-monitor-command", "web", `{"execute":"query-block"}`))(t)
	acctest.Contains(t, lengths, `"bps_max_length":2`, `"iops_max_length":3`)

	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "blkdeviotune", "web", "vda", "--live", "--total-iops-sec", "550"))(t)
	acctest.Contains(t, cli.Must("plan", "-no-color"), "total_iops_sec", "550 -> 500")
	apply()
	throttled("data", ofAll...)

	more := "\nmore = { volume = virtclaim_disk.more.volume, queues = 3 }" // unplugging it needs a guest
	write(data("") + "\n" + ssd + more)
	apply()
	throttled("data", "unmap")
	if block := qemu("info block"); strings.Contains(block, "I/O throttling") {
		t.Errorf("limits are left:\n%s", block)
	}
	if now := running(t, l.Hosts["host-a"]); now != before {
		t.Errorf("it was restarted: it ran as %s, and runs as %s", before, now)
	}

	// Limits that QEMU would refuse are not stored.
	write(data("iotune = { total_bytes_sec = 1000000000000, total_bytes_sec_max = 1000000000000, total_bytes_sec_max_length = 1000000000 }") + "\n" + ssd + more)
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("disk data could not be limited in the running machine").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	if stored := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t); strings.Contains(stored, "<iotune>") {
		t.Errorf("stored is\n%s", stored)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// QEMU has the queues of an interface from its start. Its limits are only stored here, because the kernels of many test machines can't limit
// (sch_sfq, act_police).
func TestAccVirtualMachine_LimitedInterfaces(t *testing.T) {
	w := newNetworked(t)
	cli := acctest.NewCLI(t)
	provider := fmt.Sprintf("provider \"virtclaim\" {\n  owner = \"limits\"\n  hosts = { %s = { uri = %q } }\n}\n", w.Name, w.URI)
	apply := func(lan string, running bool) string {
		t.Helper()
		interfaces := fmt.Sprintf("running = %t\n  interfaces = { lan = { bridge = %q%s } }", running, lab.Bridge, lan)
		cli.Write("main.tf", provider+fmt.Sprintf(limitedMachine, w.Name, interfaces))
		out := cli.Must("apply", "-auto-approve", "-no-color")
		acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes")
		return out
	}
	stored := func() string {
		t.Helper()
		return acctest.Must(w.Virsh(t.Context(), "dumpxml", "--inactive", "web"))(t)
	}
	apply(", bandwidth = { inbound = { average = 1000, peak = 2000, burst = 512 }, outbound = { average = 100, burst = 64 } }", false)
	acctest.Contains(t, stored(), "<inbound average='1000' peak='2000' burst='512'/>", "<outbound average='100' burst='64'/>")
	apply(", bandwidth = { outbound = { average = 200 } }", false)
	acctest.Contains(t, stored(), "<outbound average='200'/>")
	apply(", queues = 2, rx_queue_size = 512, driver = \"qemu\"", true)
	if text := stored(); strings.Contains(text, "<bandwidth>") {
		t.Errorf("limits are left:\n%s", text)
	}
	before := running(t, w.Host)
	queues := acctest.Must(w.Virsh(t.Context(), "qemu-monitor-command", "web", "--hmp", "info network"))(t)
	acctest.Contains(t, queues, "index=0,type=tap", "index=1,type=tap")
	acctest.Contains(t, acctest.Must(w.Virsh(t.Context(), "qemu-monitor-command", "web", "--hmp", "info qtree"))(t), "rx_queue_size = 512 ")
	if native := acctest.Must(w.Virsh(t.Context(), "domxml-to-native", "qemu-argv", "--domain", "web"))(t); strings.Contains(native, "vhost=on") {
		t.Errorf("QEMU was not to move the packets: %s", native)
	}

	acctest.Contains(t, strings.Join(strings.Fields(apply(", queues = 4", true)), " "), "can't be given this while it does: interface lan.")
	if now := running(t, w.Host); now != before {
		t.Errorf("it was restarted: it ran as %s, and runs as %s", before, now)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// What was set by hand is read by an import, and a configuration with the same has no changes.
func TestAccVirtualMachine_ImportOfLimits(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	virsh := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(acctest.Must(b.Virsh(t.Context(), args...))(t))
	}
	element := func(name, driver, target, more string) string {
		virsh("vol-create-as", "ssd", name, "1MiB", "--format", "raw", "--allocation", "0")
		return fmt.Sprintf("<disk type='file' device='disk'><driver name='qemu' type='raw' %s/><source file='%s'/><target %s/>%s</disk>",
			driver, virsh("vol-path", name, "--pool", "ssd"), target, more)
	}
	if err := b.DefineXML(t.Context(), `<domain type='qemu'><name>limits</name><memory unit='MiB'>32</memory><vcpu>1</vcpu>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>`+
		element("limits-a", "queues='2' detect_zeroes='on'", "dev='vda' bus='virtio'",
			"<iotune><read_iops_sec>100</read_iops_sec><read_iops_sec_max>200</read_iops_sec_max></iotune>")+
		element("limits-b", "", "dev='sda' bus='scsi' rotation_rate='7200'", "<wwn>5000C50015EA71AB</wwn><vendor>SEAGATE</vendor><product>DISK 2</product>")+`
		<interface type='bridge'><source bridge='none0'/><mac address='52:54:00:12:34:57'/><model type='virtio'/><driver name='qemu' queues='3' rx_queue_size='512'/>
		<bandwidth><inbound average='100' peak='200'/></bandwidth></interface></devices></domain>`); err != nil {
		t.Fatal(err)
	}
	cli := acctest.NewCLI(t)
	text := acctest.Provider(l, "limits")
	for _, name := range []string{"a", "b"} {
		text += fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = "host-b"
  name       = "limits-%[1]s"
  usage_type = "fast"
  size       = "1Mi"
  format     = "raw"
}
`, name)
	}
	cli.Write("main.tf", text+`
resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "limits"
  memory  = "32Mi"
  machine = { type = "q35", domain_type = "qemu" }
  running = false
  disks = {
    vda = { volume = virtclaim_disk.a.volume, queues = 2, detect_zeroes = "on", iotune = { read_iops_sec = 100, read_iops_sec_max = 200 } }
    sda = { volume = virtclaim_disk.b.volume, bus = "scsi", rotation_rate = 7200, wwn = "5000C50015EA71AB", vendor = "SEAGATE", product = "DISK 2" }
  }
  interfaces = { net0 = { bridge = "none0", queues = 3, rx_queue_size = 512, driver = "qemu", bandwidth = { inbound = { average = 100, peak = 200 } } } }
}
`)
	cli.Must("import", "-no-color", "virtclaim_disk.a", "host-b/ssd/limits-a")
	cli.Must("import", "-no-color", "virtclaim_disk.b", "host-b/ssd/limits-b")
	cli.Must("import", "-no-color", "virtclaim_virtual_machine.web", "host-b/limits")
	plan := cli.Must("plan", "-no-color") // it takes the disks over
	for _, name := range []string{"vendor", "product", "driver", "rx_queue_size", "queues", "detect_zeroes", "iotune", "rotation_rate", "wwn", "bandwidth"} {
		if strings.Contains(plan, name) {
			t.Errorf("%s, which is there, is planned:\n%s", name, plan)
		}
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes")
	acctest.Contains(t, virsh("dumpxml", "limits"), "<read_iops_sec_max>200<", "queues='2'", "<wwn>5000C50015EA71AB<", "<inbound average='100' peak='200'/>")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
