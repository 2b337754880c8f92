//go:build acc

package function_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// fromManifest is a machine that the module makes of a manifest, with a guest that says what it has, and writes to each disk.
type fromManifest struct {
	acctest.CLI
	console acctest.Console
	l       *lab.Lab
}

// shows prints what the guest found at 4 KiB of each disk, and then writes there.
const shows = `echo "HAS cpus=$(nproc) efi=$([ -d /sys/firmware/efi ] && echo yes) tpm=$(ls /sys/bus/acpi/devices | grep -c MSFT0101)"
for disk in $(disks); do echo "WAS $disk=$(dd if=/dev/$disk bs=4096 skip=1 count=1 2>/dev/null | head -c 7 | tr -d '\0')"; write $disk written; done`

// apply applies the module with the manifest and further arguments.
func apply(t *testing.T, l *lab.Lab, manifest, cmdline, more string) fromManifest {
	t.Helper()
	m := fromManifest{acctest.NewCLI(t), acctest.NewConsole(t), l}
	m.Write("web.yaml", manifest)
	module := acctest.Must(filepath.Abs("../../examples/modules/kubevirt-machine"))(t)
	m.Write("main.tf", acctest.Provider(l, "manifests")+fmt.Sprintf(`
module "web" {
  source      = %q
  manifest    = file("web.yaml")
  host        = "host-a"
  usage_type  = "fast"
  domain_type = "qemu"
  force_stop  = true
  log_file    = %q
  networks    = { pod = { user = true } }
  boot        = { kernel = %q, initrd = %q, cmdline = "%s %s virtclaim.run=%s" }
  %s
}

output "web" {
  value = module.web
}
`, module, m.console.Path(), l.Guest.Compressed, l.Guest.Initrd, l.Guest.Parameters, cmdline, base64.StdEncoding.EncodeToString([]byte(shows)), more))
	m.Must("get")
	m.Must("apply", "-auto-approve", "-no-color")
	m.console.Await(t, "READY")
	if planned := m.Must("plan", "-no-color"); !strings.Contains(planned, "No changes.") {
		t.Errorf("after the apply: %s", planned)
	}
	return m
}

// says checks the lines that begin with the first word.
func (m fromManifest) says(t *testing.T, begins string, parts ...string) {
	t.Helper()
	acctest.Contains(t, m.console.Await(t, begins), parts...)
}

// restarts starts the guest again, and ends with it.
func (m fromManifest) restarts(t *testing.T, lines ...string) {
	t.Helper()
	for _, command := range []string{"destroy", "start"} {
		acctest.Must(m.l.Hosts["host-a"].Virsh(t.Context(), command, "web"))(t)
	}
	m.console.AwaitN(t, "READY", 2)
	for _, line := range lines {
		m.console.Await(t, line)
	}
	m.Must("destroy", "-auto-approve", "-no-color")
}

const container = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: manifests}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        cpu: {cores: 2}
        memory: {guest: 192Mi}
        devices:
          disks:
          - {name: system, disk: {bus: virtio}}
          - {name: seed, disk: {bus: virtio}}
          interfaces:
          - {name: default, masquerade: {}, macAddress: "52:54:00:4b:00:01"}
      networks:
      - {name: default, pod: {}}
      volumes:
      - name: system
        containerDisk: {image: %q}
      - name: seed
        cloudInitNoCloud:
          userData: |
            #cloud-config
            packages: [nginx]
`

// A container disk forgets what its guest wrote. The seed has the manifest's data, and the guest its processors and its address.
func TestAccKubeVirtMachine_ContainerDisk(t *testing.T) {
	l := acctest.Lab(t)
	image := acctest.Must(acctest.Must(l.Registry(t.Context()))(t).AddImage(t.Context(), lab.ImageSpec{
		Repository: "manifests/web", Tag: "1", Layers: []lab.ImageLayer{{Files: map[string][]byte{"disk/disk.img": append([]byte("container disk"), make([]byte, 1<<20)...)}}},
	}))(t)
	m := apply(t, l, fmt.Sprintf(container, image.Reference), "virtclaim.disks=2 virtclaim.nics=1 virtclaim.dhcp=eth0 virtclaim.read=vdb", "")
	m.says(t, "DISK vda ", "ro=0", "first=container disk")
	m.says(t, "FILE vdb user-data ", base64.StdEncoding.EncodeToString([]byte("#cloud-config\npackages: [nginx]\n")))
	m.says(t, "HAS ", "cpus=2")
	m.says(t, "NIC eth0 ", "mac=52:54:00:4b:00:01", "address=10.")
	m.console.Await(t, "WROTE vda")
	m.restarts(t)
	if was := m.console.Lines("WAS vda="); len(was) != 2 || strings.Contains(was[1], "written") {
		t.Errorf("the disk has what the guest wrote before: %q", was)
	}
}

const seeds = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: web, namespace: manifests}
spec:
  domain:
    memory: {guest: 192Mi}
    devices:
      disks:
      - {name: seed, disk: {bus: virtio}}
      - {name: drive, cdrom: {bus: sata}}
  volumes:
  - {name: seed, cloudInitNoCloud: {userData: "#cloud-config\n# web\n"}}
  - {name: drive, cloudInitConfigDrive: {userData: "#cloud-config\n# \"web\"\n"}}
`

// A machine with another name than its manifest's, as when several are made of one, tells its guest that name, and changes nothing else.
func TestAccKubeVirtMachine_Name(t *testing.T) {
	m := apply(t, acctest.Lab(t), seeds, "virtclaim.disks=1 virtclaim.cdroms=1 virtclaim.read=vda virtclaim.read=sr0", `name = "shop"`)
	for file, text := range map[string]string{
		"FILE vda meta-data ":               "instance-id: \"shop.manifests\"\nlocal-hostname: \"shop\"\n",
		"FILE vda user-data ":               "#cloud-config\n# web\n",
		" openstack/latest/meta_data.json ": `{"hostname":"shop","instance_id":"shop.manifests","uuid":"shop.manifests"}`,
		" openstack/latest/user_data ":      "#cloud-config\n# \"web\"\n",
	} {
		m.says(t, file, base64.StdEncoding.EncodeToString([]byte(text)))
	}
	m.Must("destroy", "-auto-approve", "-no-color")
}

const claims = `
apiVersion: kubevirt.io/v1alpha3
kind: VirtualMachineInstance
metadata: {name: web, namespace: manifests}
spec:
  domain:
    cpu: {sockets: 1, cores: 2, threads: 2}
    resources: {requests: {memory: 192Mi}}
    devices:
      disks:
      - {name: logs, serial: logs-1, disk: {bus: virtio}}
      - {name: system, bootOrder: 1, disk: {}, serial: system-1}
      - {name: data, lun: {bus: scsi}}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: logs, persistentVolumeClaim: {claimName: logs}}
  - {name: system, persistentVolumeClaim: {claimName: system}}
`

// Claims are used directly, each on its bus, in the manifest's order.
func TestAccKubeVirtMachine_Claims(t *testing.T) {
	l := acctest.Lab(t)
	for _, name := range []string{"data", "logs", "system"} {
		acctest.Claim(t, l, "manifests", name, acctest.LUN(t, l, false, "of "+name))
	}
	m := apply(t, l, claims, "virtclaim.disks=3", "")
	m.says(t, "DISK vda ", "serial=logs-1", "first=of logs")
	m.says(t, "first=of system", "DISK sd", "serial=system-1")
	m.says(t, "first=of data", "DISK sd")
	m.says(t, "HAS ", "cpus=4")
	m.restarts(t, "WAS vda=written", "WAS sda=written", "WAS sdb=written")
}

const filled = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: manifests}
spec:
  running: true
  dataVolumeTemplates:
  - metadata: {name: web-system}
    spec:
      storage: {resources: {requests: {storage: 64Mi}}}
      source: {http: {url: %q}}
  template:
    spec:
      domain:
        memory: {guest: 192Mi}
        devices:
          disks: [{name: system, disk: {bus: virtio}}]
      volumes:
      - {name: system, dataVolume: {name: web-system}}
`

// A DataVolume's claim is filled from its source before the machine starts, and keeps what the guest writes.
func TestAccKubeVirtMachine_DataVolume(t *testing.T) {
	l := acctest.Lab(t)
	web := acctest.Must(l.Web(t.Context()))(t)
	file := acctest.Must(web.AddFile("system.img", 8<<20, []byte("downloaded")))(t)
	acctest.Claim(t, l, "manifests", "web-system", acctest.LUN(t, l, true, ""))
	m := apply(t, l, fmt.Sprintf(filled, "http://"+web.HTTP+"/"+file.Name), "virtclaim.disks=1", "")
	m.says(t, "DISK vda ", "bytes=67108864", "first=downloaded")
	if claim := m.Must("output", "-json", "web"); !strings.Contains(claim, `"storage":"64Mi"`) || !strings.Contains(claim, `"PersistentVolumeClaim"`) {
		t.Errorf("the claim to make is not in %s", claim)
	}
	m.restarts(t, "WAS vda=written")

	if out, err := m.Run("apply", "-auto-approve", "-no-color"); err == nil || !strings.Contains(out, "not blank") {
		t.Errorf("a claim that has content was filled: %v\n%s", err, out)
	}
	m.Replace("main.tf", "force_stop  = true", "force_stop  = true\n  fill        = false")
	m.Must("apply", "-auto-approve", "-no-color")
	m.console.AwaitN(t, "READY", 3)
	if was := m.console.Lines("WAS vda=written"); len(was) != 2 {
		t.Errorf("the claim has lost what was written: %q", was)
	}
	m.Must("destroy", "-auto-approve", "-no-color")
}

const ephemeral = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: web, namespace: manifests}
spec:
  domain:
    memory: {guest: 192Mi}
    devices:
      disks:
      - {name: golden, disk: {bus: virtio}}
      - {name: scratch, disk: {bus: virtio}}
  volumes:
  - name: golden
    ephemeral: {persistentVolumeClaim: {claimName: golden}}
  - name: scratch
    emptyDisk: {capacity: 16Mi}
`

// What the guest writes over an ephemeral claim, and to an empty disk, is gone when it stops. The claim is not written to.
func TestAccKubeVirtMachine_Ephemeral(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, false, "golden")
	acctest.Claim(t, l, "manifests", "golden", lun)
	m := apply(t, l, ephemeral, "virtclaim.disks=2", "")
	m.says(t, "DISK vda ", "ro=0", "first=golden")
	m.says(t, "DISK vdb ", "ro=0", "bytes=16777216")
	m.console.Await(t, "WROTE vda")
	m.console.Await(t, "WROTE vdb")
	m.restarts(t)
	if was := m.console.Lines("WAS "); len(was) != 4 || strings.Contains(strings.Join(was, " "), "written") {
		t.Errorf("what was written is still there: %q", was)
	}
	if has := acctest.StoredAt(t, lun.Path, 4096, 7); strings.Contains(has, "written") {
		t.Errorf("the claim has %q", has)
	}
}

const drives = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: manifests}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        memory: {guest: 192Mi}
        devices:
          disks:
          - {name: system, bootOrder: 1, disk: {bus: virtio}}
          - {name: seed, cdrom: {bus: sata}}
          - {name: settings, disk: {bus: sata}}
      volumes:
      - name: system
        hostDisk: {path: %q, type: Disk}
      - name: seed
        cloudInitConfigDrive: {secretRef: {name: seed}}
      - name: settings
        configMap: {name: settings, volumeLabel: SETTINGS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: manifests}
data:
  shop.conf: "currency = EUR\n"
`

// A file of the host is a disk, and what the guest only reads is a drive: a ConfigDrive whose data a Secret has, and the keys of a ConfigMap.
func TestAccKubeVirtMachine_Drives(t *testing.T) {
	l := acctest.Lab(t)
	file := acctest.ImageIn(t, t.TempDir(), "system.img")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "manifests", Name: "seed"}, StringData: map[string]string{"userdata": "#cloud-config\n"}}
	if err := l.AddNamespace(t.Context(), "manifests"); err != nil {
		t.Fatal(err)
	}
	if err := l.AddSecret(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(ctx context.Context) error { return l.RemoveSecret(ctx, "manifests", "seed") })
	m := apply(t, l, fmt.Sprintf(drives, file), "virtclaim.disks=1 virtclaim.cdroms=2 virtclaim.read=sr0 virtclaim.read=sr1", "")
	m.says(t, "DISK vda ", "first="+acctest.Known)
	m.says(t, " openstack/latest/user_data ", base64.StdEncoding.EncodeToString([]byte("#cloud-config\n")))
	m.says(t, "label=SETTINGS", "CDROM sr")
	m.says(t, " shop.conf ", base64.StdEncoding.EncodeToString([]byte("currency = EUR\n")))
	for _, file := range []string{"terraform.tfstate", "main.tf"} {
		if text := string(acctest.Must(os.ReadFile(filepath.Join(m.Dir, file)))(t)); strings.Contains(text, "#cloud-config") {
			t.Errorf("the Secret's data are in %s", file)
		}
	}
	m.restarts(t, "WAS vda=written")
}

const preferred = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: manifests}
spec:
  runStrategy: Always
  instancetype: {kind: VirtualMachineInstancetype, name: small}
  preference: {kind: VirtualMachinePreference, name: linux}
  template:
    spec:
      domain:
        devices:
          disks: [{name: system}]
      volumes:
      - name: system
        persistentVolumeClaim: {claimName: preferred}
`

const kinds = `
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: small}
spec: {cpu: {guest: 2}, memory: {guest: 256Mi}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachinePreference
metadata: {name: linux}
spec:
  firmware: {preferredEfi: {secureBoot: false}}
  devices: {preferredDiskBus: virtio, preferredTPM: {}, preferredRng: {}}
`

// An instance type has the processors and the memory, and a preference the firmware, the TPM and the bus.
func TestAccKubeVirtMachine_InstanceType(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "manifests", "preferred", acctest.LUN(t, l, false, "preferred"))
	m := apply(t, l, preferred, "virtclaim.disks=1", fmt.Sprintf("more = [%q]", kinds))
	m.says(t, "DISK vda ", "first=preferred")
	m.says(t, "HAS ", "cpus=2", "efi=yes", "tpm=1")
	m.restarts(t, "WAS vda=written")
}
