//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// floppySize is the size in bytes of a floppy of 1.44 MB.
const floppySize = 1440 << 10

// onFile creates a file that begins with a text, and returns a disk with it as its volume.
func onFile(t *testing.T, dir, key, text, more string) string {
	t.Helper()
	name := filepath.Join(dir, text+".raw")
	if _, err := os.Stat(name); err != nil {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, floppySize); err != nil {
			t.Fatal(err)
		}
	}
	disk := strings.Replace(handmade(key, "write-exclusive", "", more, "host-a"), `bus = ""`, "", 1)
	return regexp.MustCompile(`uri  .*?,`).ReplaceAllString(disk, fmt.Sprintf("uri = %q,", name))
}

// onUnit is a disk whose volume is a logical unit.
func onUnit(l *lab.Lab, lun lab.LUN, key, more string) string {
	disk := strings.Replace(handmade(key, "write-exclusive", "", more, "host-a"), `bus = ""`, "", 1)
	return strings.NewReplacer("iqn.2026-01.io.example:"+key+"/1", fmt.Sprintf("%s/%d", lun.IQN, lun.Number),
		"127.0.0.1:3260", l.Target.Portal).Replace(disk)
}

// facts is a command that has the guest print the properties of each disk, by the key that it begins with.
const facts = `for d in $(disks); do q=/sys/block/$d/queue; echo "FACT $(head -c 16 /dev/$d | tr -d '\0') serial=$(serial $d) ` +
	`ro=$(cat /sys/block/$d/ro) blocks=$(cat $q/logical_block_size)/$(cat $q/physical_block_size) ` +
	`vendor=$(cat /sys/block/$d/device/vendor)"; done`

// The guest sees each kind of device on each bus as configured; media, USB disks and the replacement of a disk change live, and the rest is
// pending while the guest runs.
func TestAccVirtualMachine_GuestSeesEachDevice(t *testing.T) {
	const tuned = `
		bus                = "virtio"
		target             = "vdc"
		serial             = "twenty-characters-20"
		logical_block_size = 4096
		cache              = "none"
		io                 = "native"
		discard            = "unmap"
		error_policy       = "report"
		iothread           = 2`
	for machineType, only := range map[string]struct {
		disks func(t *testing.T, dir, medium string) []string
		facts []string
		// medium and cdrom are the guest's names of the drives.
		medium, cdrom string
	}{
		"pc": {
			disks: func(t *testing.T, dir, medium string) []string {
				t.Helper()
				return []string{onFile(t, dir, "ide", "ide", `bus = "ide"`), onFile(t, dir, "floppy", medium, `device = "floppy"`)}
			},
			facts: []string{"FACT ide serial=QM"}, medium: "fd0", cdrom: "sr0",
		},
		"q35": {
			disks: func(t *testing.T, dir, medium string) []string {
				t.Helper()
				return []string{onFile(t, dir, "disc", medium, "device = \"cdrom\"\nbus = \"scsi\"")}
			},
			medium: "sr0", cdrom: "sr1",
		},
	} {
		t.Run(machineType, func(t *testing.T) {
			l := acctest.Lab(t)
			dir, lun, console := t.TempDir(), acctest.LUN(t, l, false, "lun"), acctest.NewConsole(t)
			config := func(medium, scsi string, disks ...string) string {
				all := append(only.disks(t, dir, medium), onFile(t, dir, "virtio", "virtio", tuned),
					onFile(t, dir, "scsi", "scsi", "bus = \"scsi\"\nread_only = true\nphysical_block_size = 4096\n"+scsi),
					onFile(t, dir, "sata", "sata", "bus = \"sata\"\nserial = \"sata-1\""), onUnit(l, lun, "lun", `device = "lun"`))
				return acctest.Provider(l, "devices") + machine{
					machineType: machineType, disks: append(all, disks...), log: console.Path(),
					cmdline: "virtclaim.load=xhci_pci virtclaim.load=usb_storage",
				}.hcl(l)
			}
			stick := onFile(t, dir, "usb", "usb", "bus = \"usb\"\nserial = \"stick\"")
			data := func(text string) string { return onFile(t, dir, "data", text, `bus = "virtio"`) }
			sees := func(wanted ...string) resource.TestCheckFunc {
				return func(*terraform.State) error {
					console.Await(t, "READY")
					acctest.Eventually(t, "the guest has taken up what was plugged in", func() error {
						told := ask(t, l, facts+`; cat /sys/bus/usb/devices/*/serial; load floppy; for c in $(cdroms); do report_cdrom $c; done; medium `+only.medium+
							`; echo "MEDIUM $(head -c 16 /dev/`+only.medium+` | tr -d '\0') ro=$(read_only `+only.medium+`)"`)
						for _, part := range wanted {
							if !strings.Contains(told, part) {
								return fmt.Errorf("%q is missing in: %s", part, told)
							}
						}
						return nil
					})
					if boots := console.Boots(); boots != 1 {
						return fmt.Errorf("the guest has booted %d times", boots)
					}
					return nil
				}
			}
			always := append([]string{
				"FACT virtio serial=twenty-characters-20 ro=0 blocks=4096/4096", "FACT sata serial=sata-1 ro=0 blocks=512/512 vendor=ATA",
				"ro=1 blocks=512/4096 vendor=QEMU", "FACT lun serial=beaf", "vendor=IET",
			}, only.facts...)
			imported := resource.TestStep{ResourceName: web, ImportState: true, ImportStateId: "host-a/web", ImportStateVerify: true}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{
					{
						Config: config("first", `serial = "before"`, stick, data("old data"), `empty = { device = "cdrom" }`),
						Check: resource.ComposeTestCheckFunc(sees(append(always, "FACT scsi serial=before", "FACT usb ", "stick", "FACT old data ", "MEDIUM first ro=1", "CDROM "+only.cdrom+" empty")...),
							resource.TestCheckNoResourceAttr(web, "disks.sata.cache"), resource.TestCheckNoResourceAttr(web, "disks.empty.volume")),
					},
					imported,
					{
						// The guest sees the new medium and the other disk, and no longer the USB stick; what can't change live is there after its next
						// start.
						Config:           config("second", `serial = "after"`, data("new data"), onFile(t, dir, "empty", "a disc", `device = "cdrom"`)),
						ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
						Check: resource.ComposeTestCheckFunc(sees(append(always, "FACT scsi serial=before", "FACT new data ", "MEDIUM second ro=1", "CDROM "+only.cdrom+" bytes=1474560 ro=1")...),
							func(*terraform.State) error {
								if told := ask(t, l, facts); strings.Contains(told, "FACT usb") || strings.Contains(told, "old data") {
									return fmt.Errorf("the stick, or the old disk, is still there: %s", told)
								}
								stored, err := l.Hosts["host-a"].Virsh(context.Background(), "dumpxml", "--inactive", "web")
								acctest.Contains(t, stored, "<serial>after</serial>", "<iothreads>2</iothreads>", "<target dev='vdc' bus='virtio'/>")
								return err
							}),
					},
					imported,
				},
			})
		})
	}
}

// A claim is a logical unit, whose target answers the guest's SCSI commands itself, and to which it writes; and it is a floppy disk, if it
// is as small as one, in a machine of the type pc, as no other type has a controller for it.
func TestAccVirtualMachine_ClaimsAsUnitAndFloppy(t *testing.T) {
	l := acctest.Lab(t)
	unit, console := acctest.LUN(t, l, true, "a unit"), acctest.NewConsole(t)
	small := acctest.Must(l.Target.AddLUN(t.Context(), lab.LUNSpec{Size: floppySize, Content: []byte("a floppy disk")}))(t)
	acctest.Undo(t, func(ctx context.Context) error { return l.Target.RemoveLUN(ctx, small) })
	acctest.Claim(t, l, "devices", "unit", unit)
	acctest.Claim(t, l, "devices", "small", small)
	config := func(machineType string) string {
		return acctest.Provider(l, "devices") + claimBinding("devices", "unit", "write-exclusive", "host-a") +
			claimBinding("devices", "small", "read-shared", "host-a") + machine{
			machineType: machineType, log: console.Path(), cmdline: "virtclaim.write=sda:" + written,
			disks: []string{
				`unit = { volume = virtclaim_volume_binding.unit.volume, device = "lun", bus = "scsi" }`,
				`small = { volume = virtclaim_volume_binding.small.volume, device = "floppy" }`,
			},
		}.hcl(l)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("q35"), ExpectError: message("No floppy controller", "which only a pc has")},
			{
				Config: config("pc"),
				Check: func(*terraform.State) error {
					console.Await(t, "READY")
					console.Await(t, "WROTE sda ")
					said := ask(t, l, facts+`; load floppy; medium fd0; echo "MEDIUM $(head -c 13 /dev/fd0) bytes=$(bytes fd0) ro=$(read_only fd0)"`)
					acctest.Contains(t, said, "FACT a unit serial=", "vendor=IET", fmt.Sprintf("MEDIUM a floppy disk bytes=%d ro=1", floppySize))
					if got := acctest.StoredAt(t, unit.Path, 4096, len(written)); got != written {
						return fmt.Errorf("the logical unit has %q where the guest wrote", got)
					}
					return nil
				},
			},
			{Config: config("pc"), PlanOnly: true},
		},
	})
}

// bootable creates a file for onFile that a BIOS boots, and that reports this on the first serial port: code for x86 that writes the text
// after it, byte by byte, and halts.
func bootable(t *testing.T, dir, key string) {
	t.Helper()
	sector := make([]byte, floppySize)
	copy(sector, "\xfc\x31\xc0\x8e\xd8\xbe\x16\x7c\xac\x84\xc0\x74\x06\xba\xf8\x03\xee\xeb\xf5\xf4\xeb\xfd"+"started from "+key+"\n\x00")
	copy(sector[510:], "\x55\xaa")
	if err := os.WriteFile(filepath.Join(dir, key+".raw"), sector, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAccVirtualMachine_BootOrder(t *testing.T) {
	l := acctest.Lab(t)
	dir, console := t.TempDir(), acctest.NewConsole(t)
	config := func(first, second string) string {
		var disks []string
		for n, key := range []string{first, second} {
			bootable(t, dir, key)
			disks = append(disks, onFile(t, dir, key, key, fmt.Sprintf("bus = \"virtio\"\nboot_order = %d", n+1)))
		}
		return acctest.Provider(l, "order") + machine{
			disks: disks, idle: true, more: fmt.Sprintf("allow_restart = true\n  serial = { log_file = %q }", console.Path()),
		}.hcl(l)
	}
	starts := func(from string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			console.Await(t, "started from "+from)
			suspended(t, l.Hosts["host-a"]) // what it has started ignores its power button
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("b", "a"), Check: starts("b")},
			{Config: config("a", "b"), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate), Check: starts("a")},
		},
	})
}
