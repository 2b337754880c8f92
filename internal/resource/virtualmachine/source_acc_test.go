//go:build acc

package virtualmachine_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// With credentials in the configuration a guest reads the content of the storage and writes to it.
func TestAccVirtualMachine_DirectCredentials(t *testing.T) {
	direct := func(l *lab.Lab, lun lab.LUN, credentials string) string {
		return fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name   = "data"
  hosts  = ["host-a"]
  source = { iscsi = { portal = %q, iqn = %q, lun = %d, %s } }
}
`, l.Target.Portal, lun.IQN, lun.Number, credentials)
	}
	for _, c := range []struct {
		name    string
		binding func(t *testing.T, l *lab.Lab, lun lab.LUN) string
	}{
		{"direct with a write-only password", func(_ *testing.T, l *lab.Lab, lun lab.LUN) string {
			return direct(l, lun, fmt.Sprintf("username = %q, password_wo = %q, password_wo_version = 1",
				l.Target.Username, l.Target.Password))
		}},
		{"direct with a Kubernetes secret", func(t *testing.T, l *lab.Lab, lun lab.LUN) string {
			t.Helper()
			acctest.CHAPSecret(t, l, "sources", "by-hand")
			return direct(l, lun, `secret_ref = { namespace = "sources", name = "by-hand" }`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, true, "what the storage had")
			console := acctest.NewConsole(t)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{{
					Config: acctest.Provider(l, "sources") + c.binding(t, l, lun) + machine{
						disks: []string{disk("root", "data", "virtio")}, log: console.Path(),
						cmdline: "virtclaim.write=vda:from-the-guest",
					}.hcl(l),
					Check: func(*terraform.State) error {
						console.Await(t, "READY")
						seen := console.Await(t, "DISK vda ")
						acctest.Contains(t, seen, "ro=0", "first=what the storage had", fmt.Sprintf("bytes=%d", lun.Size))
						console.Await(t, "WROTE vda ")
						if got := acctest.StoredAt(t, lun.Path, 4096, 14); got != "from-the-guest" {
							return fmt.Errorf("the storage has %q where the guest wrote", got)
						}
						return nil
					},
				}},
			})
		})
	}
}

// Of a file in the format qcow2 a guest sees the disk in it, not its header, and what it writes is in that disk.
func TestAccVirtualMachine_QCOW2File(t *testing.T) {
	l := acctest.Lab(t)
	dir, console := t.TempDir(), acctest.NewConsole(t)
	image, after := filepath.Join(dir, "data.qcow2"), filepath.Join(dir, "after.raw")
	convert := func(from, format, to string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-O", format, from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	convert(acctest.ImageIn(t, dir, "data.raw"), "qcow2", image)
	store := acctest.Storage{Stored: func(offset int64, n int) string { return acctest.StoredAt(t, after, offset, n) }}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "qcow2") + bound(fmt.Sprintf("file = { path = %q, format = \"qcow2\" }", image), "write-exclusive", "host-a") +
				machine{disks: []string{told("data", "virtclaim_volume_binding.data")}, log: console.Path(), cmdline: "virtclaim.write=vda:" + written}.hcl(l),
			Check: func(s *terraform.State) error {
				console.Await(t, "READY")
				return resource.TestCheckResourceAttr("virtclaim_volume_binding.data", "volume.capacity", fmt.Sprint(acctest.StorageSize))(s)
			},
		}},
		CheckDestroy: func(*terraform.State) error {
			convert(image, "raw", after)
			writes(t, "data", store, console)
			return nil
		},
	})
}

func TestAccVirtualMachine_GuestSeesEachBus(t *testing.T) {
	for machineType, buses := range map[string][]string{"pc": {"virtio", "scsi", "sata", "ide"}, "q35": {"virtio", "scsi", "sata"}} {
		t.Run(machineType, func(t *testing.T) {
			l := acctest.Lab(t)
			config, disks := acctest.Provider(l, "buses"), []string{}
			for _, bus := range buses {
				lun := acctest.LUN(t, l, false, "disk on "+bus)
				acctest.Claim(t, l, "buses", bus, lun)
				config += claimBinding("buses", bus, "write-exclusive", "host-b")
				disks = append(disks, disk(bus, bus, bus))
			}
			acctest.Claim(t, l, "buses", "medium", acctest.LUN(t, l, false, "medium"))
			config += claimBinding("buses", "medium", "write-exclusive", "host-b")
			disks = append(disks, `medium = { volume = virtclaim_volume_binding.medium.volume, device = "cdrom", bus = "scsi" }`)
			console := acctest.NewConsole(t)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{{
					Config: config + machine{host: "host-b", machineType: machineType, disks: disks, log: console.Path()}.hcl(l),
					Check: func(*terraform.State) error {
						console.Await(t, "READY")
						acctest.Contains(t, console.Text(t), "CDROM sr0 bytes=67108864 ro=1")
						for _, bus := range buses {
							acctest.Contains(t, console.Text(t), "first=disk on "+bus)
						}
						return nil
					},
				}},
			})
		})
	}
}

func TestAccVirtualMachine_ReadSharedIsReadOnly(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "golden")
	acctest.Claim(t, l, "shared", "golden", lun)
	config := acctest.Provider(l, "shared") + claimBinding("shared", "golden", "read-shared", "host-a", "host-b")
	consoles := map[string]acctest.Console{}
	for name, host := range map[string]string{"one": "host-a", "two": "host-b"} {
		consoles[name] = acctest.NewConsole(t)
		config += machine{
			name: name, host: host, disks: []string{disk("lib", "golden", "virtio")}, log: consoles[name].Path(),
			cmdline: "virtclaim.write=vda:must-not-arrive",
		}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config,
			Check: func(*terraform.State) error {
				for _, console := range consoles {
					acctest.Contains(t, console.Await(t, "DISK vda "), "ro=1", "first=golden")
					console.Await(t, "FAILED vda ")
				}
				if got := acctest.StoredAt(t, lun.Path, 4096, 15); got == "must-not-arrive" {
					return fmt.Errorf("a machine wrote to a volume that is read-shared")
				}
				return nil
			},
		}},
	})
}
