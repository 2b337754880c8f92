//go:build acc

package virtualmachine_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A domain that was not created by virtclaim is imported while it runs, with a warning of devices without an attribute; a configuration
// that equals the state has no changes.
func TestAccVirtualMachine_ImportWarnsOfUnsupported(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	if err := b.DefineXML(t.Context(), `<domain type='qemu'><name>by-hand</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/><vmport state='off'/></features><cputune><shares>2048</shares></cputune>
		<devices><serial type='pty'/><sound model='ich9'/><shmem name='a'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem></devices></domain>`); err != nil {
		t.Fatal(err)
	}
	// What the warning leaves out because libvirt adds it.
	if err := b.DefineXML(t.Context(), `<domain type='qemu'><name>bare</name><memory unit='MiB'>64</memory><cpu mode='host-passthrough'/>
		<os><type arch='x86_64' machine='q35'>hvm</type></os><devices/></domain>`); err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, acctest.Must(b.Virsh(t.Context(), "dumpxml", "bare"))(t), "migratable='on'", "model='qemu-xhci'", "model='virtio'")
	acctest.Must(b.Virsh(t.Context(), "undefine", "bare"))(t)
	acctest.Must(b.Virsh(t.Context(), "start", "by-hand"))(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "import")+`
resource "virtclaim_virtual_machine" "web" {
  host    = "host-b"
  name    = "by-hand"
  memory  = "64Mi"
  cpu     = { vcpus = 2, shares = 2048 }
  machine = { type = "q35", domain_type = "qemu" }
  serial  = {}

  domain_xml  = "<features><vmport state='off'/></features>"
  devices_xml = "<sound model='ich9'/>"
}
`)
	out := cli.Must("import", "-no-color", "virtclaim_virtual_machine.web", "host-b/by-hand")
	acctest.Contains(t, strings.Join(strings.Fields(out), " "), "Not all of the machine can be described here", "no attributes for: shmem.")
	if out, err := cli.Run("plan", "-detailed-exitcode", "-no-color"); err != nil {
		t.Errorf("the plan of what is there is not empty: %v\n%s", err, out)
	}
	acctest.Must(b.Virsh(t.Context(), "destroy", "by-hand"))(t) // it has nothing to boot, and so no guest to shut down
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// The files that a guest has open are recorded when its domain is imported while it runs: a file that is deleted later is not replaced. A
// file that was deleted before the import is not confused with its replacement. The same holds for a disk that names its storage pool and
// volume.
func TestAccVirtualMachine_ImportedWhileItRuns(t *testing.T) {
	l := acctest.Lab(t)
	b := l.Hosts["host-b"]
	for name, source := range map[string]string{
		"by-path":   "<disk type='file' device='disk'><source file='%s'/>",
		"by-volume": "<disk type='volume' device='disk'><source pool='ssd' volume='by-volume'/>",
	} {
		t.Run(name, func(t *testing.T) {
			virsh := func(args ...string) string {
				t.Helper()
				return strings.TrimSpace(acctest.Must(b.Virsh(t.Context(), args...))(t))
			}
			virsh("vol-create-as", "ssd", name, "1MiB", "--format", "raw", "--allocation", "0") // as large as one that is recreated
			source := strings.ReplaceAll(source, "%s", virsh("vol-path", name, "--pool", "ssd"))
			if err := b.DefineXML(t.Context(), "<domain type='qemu'><name>"+name+`</name><memory unit='MiB'>32</memory>
				<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/><vmport state='off'/></features><devices><serial type='pty'/>
				`+source+"<driver name='qemu' type='raw'/><target dev='vda' bus='virtio'/></disk></devices></domain>"); err != nil {
				t.Fatal(err)
			}
			virsh("start", name)
			cli := acctest.NewCLI(t)
			cli.Write("main.tf", acctest.Provider(l, "import")+strings.ReplaceAll(importedWhileItRuns, "NAME", name))
			cli.Must("import", "-no-color", "virtclaim_disk.data", "host-b/ssd/"+name)
			cli.Must("import", "-no-color", "virtclaim_virtual_machine.web", "host-b/"+name)
			cli.Must("apply", "-auto-approve", "-no-color")
			cli.Replace("main.tf", `"1Mi"`, `"2Mi"`)
			cli.Must("apply", "-auto-approve", "-no-color")
			virsh("vol-delete", name, "--pool", "ssd")
			acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: Domain "+name+" runs with the deleted disk host-b/ssd/"+name)
			cli.Must("apply", "-auto-approve", "-no-color")
			acctest.Contains(t, cli.Must("plan", "-no-color"), "Warning: Machine "+name+" has a file of disk vda open that is gone")

			virsh("metadata", name, "https://virtclaim.io/libvirt/domain/1", "--remove", "--live", "--config") // as it was before the first apply
			if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil {
				t.Errorf("a file that was made a moment ago was taken for the guest's:\n%s", out)
			} else {
				acctest.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "), "because the running guest would lose what it has written")
			}
			virsh("destroy", name)
			cli.Must("apply", "-auto-approve", "-no-color")
			virsh("destroy", name)
			cli.Must("destroy", "-auto-approve", "-no-color")
		})
	}
}

// importedWhileItRuns is a machine that may be forced off, because it has nothing to boot.
const importedWhileItRuns = `
resource "virtclaim_disk" "data" {
  host       = "host-b"
  name       = "NAME"
  usage_type = "fast"
  size       = "1Mi"
  format     = "raw"
}

resource "virtclaim_virtual_machine" "web" {
  host       = "host-b"
  name       = "NAME"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  serial     = {}
  force_stop = true
  disks      = { vda = { volume = virtclaim_disk.data.volume } }
}
`
