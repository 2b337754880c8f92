//go:build acc

package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const blank = `size = "64Mi"`

// has checks the disk targets of a domain, in its live and its persistent definition.
func has(t *testing.T, l *lab.Lab, want ...string) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		for _, args := range [][]string{{"domblklist", "web"}, {"domblklist", "web", "--inactive"}} {
			out := virsh(t, l, args...)
			if n := strings.Count(out, "\n v") + strings.Count(out, "\n s"); n != len(want) {
				return fmt.Errorf("%v shows not %d disks:\n%s", args, len(want), out)
			}
			for _, target := range want {
				if !strings.Contains(out, " "+target+" ") {
					return fmt.Errorf("%v does not show %s:\n%s", args, target, out)
				}
			}
		}
		return nil
	}
}

func TestAccDisk_UnpluggedAndDeletedInOneApply(t *testing.T) {
	for name, lifecycle := range map[string]struct{ disk, machine string }{
		"by default":                           {},
		"create_before_destroy on the disk":    {disk: "lifecycle { create_before_destroy = true }"},
		"create_before_destroy on the machine": {machine: "lifecycle { create_before_destroy = true }"},
	} {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			console := acctest.NewConsole(t)
			root, data := disk("root", blank), disk("data", blank+"\n"+lifecycle.disk)
			config := func(disks string, on ...string) string {
				return acctest.Provider(l, "disks") + disks + vm(l, console, "", lifecycle.machine, on...)
			}
			withBoth := config(root+data, on("root", theDisk, ""), on("vol", "virtclaim_disk.data", ""))
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{
					{Config: withBoth, Check: resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "vdb"))},
					{
						Config: config(root, on("root", theDisk, "")),
						ConfigPlanChecks: pre(planned(theMachine, plancheck.ResourceActionUpdate),
							planned("virtclaim_disk.data", plancheck.ResourceActionDestroy)),
						Check: resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda"), gone(file(l, "data"))),
					},
					{Config: withBoth, Check: resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "vdb"))},
				},
			})
		})
	}
}

func gone(path string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there: %w", path, err)
		}
		return nil
	}
}

func TestAccVolumeBinding_UnpluggedAndReleasedInOneApply(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	acctest.Claim(t, l, "disks", "data", acctest.LUN(t, l, true, "data"))
	config := func(more string, on ...string) string {
		return acctest.Provider(l, "disks") + disk("root", blank) + more + vm(l, console, "", "", on...)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(binding("data", "write-exclusive", "host-a"),
					on("root", theDisk, ""), on("vol", "virtclaim_volume_binding.data", `, bus = "virtio"`)),
				Check: resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "vdb")),
			},
			{
				Config: config("", on("root", theDisk, "")),
				Check:  resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda")),
			},
		},
	})
}

// openFiles are the files that the host's QEMU processes have open, including deleted ones.
func openFiles(t *testing.T, l *lab.Lab) (names []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, l.Hosts["host-a"].Dir+"/pools/") {
			names = append(names, to)
		}
	}
	return names
}

func TestAccDisk_ReplacedIsPluggedIn(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("data", blank) +
		vm(l, console, "", "", on("root", theDisk, ""), on("vol", "virtclaim_disk.data", `, bus = "scsi"`))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: boots(t, console, 1)},
			{
				Taint:  []string{"virtclaim_disk.data"},
				Config: config,
				ConfigPlanChecks: pre(planned(theMachine, plancheck.ResourceActionUpdate),
					planned("virtclaim_disk.data", plancheck.ResourceActionReplace)),
				Check: resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "sda"), func(*terraform.State) error {
					open := strings.Join(openFiles(t, l), "\n")
					if strings.Contains(open, "(deleted)") || !strings.Contains(open, file(l, "data")) {
						return fmt.Errorf("QEMU has open:\n%s", open)
					}
					return nil
				}),
			},
		},
	})
}

// Terraform updates both machines at once.
func TestAccDisk_MovesBetweenRunningMachines(t *testing.T) {
	l := acctest.Lab(t)
	web, db := acctest.NewConsole(t), acctest.NewConsole(t)
	acctest.Claim(t, l, "disks", "data", acctest.LUN(t, l, false, "data"))
	machines := func(webs, dbs string) string {
		other := strings.NewReplacer(`"web"`, `"db"`, web.Path(), db.Path()).Replace(vm(l, web, "", "", dbs))
		return acctest.Provider(l, "disks") + binding("data", "write-exclusive", "host-a") + disk("root", blank) + vm(l, web, "", "", webs) + other
	}
	both := on("net", "virtclaim_volume_binding.data", `, bus = "virtio"`) + "\n" + on("vol", theDisk, "")
	ready := resource.ComposeTestCheckFunc(boots(t, web, 1), boots(t, db, 1))
	holder := func(name string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			for domain, want := range map[string]int{"web": 0, "db": 0, name: 2} {
				if n := strings.Count(virsh(t, l, "domblklist", domain), "\n vd"); n != want {
					return fmt.Errorf("%s has %d disks, not %d", domain, n, want)
				}
			}
			return nil
		}
	}
	steps := []resource.TestStep{{Config: machines(both, ""), Check: resource.ComposeTestCheckFunc(ready, holder("web"))}}
	for _, to := range []string{"db", "web", "db"} {
		config := machines(both, "")
		if to == "db" {
			config = machines("", both)
		}
		steps = append(steps, resource.TestStep{Config: config, Check: resource.ComposeTestCheckFunc(ready, holder(to))})
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: acctest.Factories(), Steps: steps})
}

func TestAccDisk_UnpluggedByHandIsRestored(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	config := acctest.Provider(l, "disks") + disk("root", blank) + disk("data", blank) +
		vm(l, console, "", "", on("root", theDisk, ""), on("vol", "virtclaim_disk.data", ""))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: boots(t, console, 1)},
			{
				PreConfig: func() {
					acctest.Eventually(t, "the guest lets go", func() error {
						virsh(t, l, "detach-disk", "web", "vdb", "--live")
						if strings.Contains(virsh(t, l, "domblklist", "web"), "vdb") {
							return os.ErrExist
						}
						return nil
					})
				},
				Config:           config,
				ConfigPlanChecks: pre(planned(theMachine, plancheck.ResourceActionUpdate)),
				Check:            resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "vdb")),
			},
		},
	})
}

func TestAccDisk_BootDiskIsNotUnplugged(t *testing.T) {
	l := acctest.Lab(t)
	started, suspend := starts(t, l), suspendBare(t, l)
	config := func(disks, running string, on ...string) string {
		return acctest.Provider(l, "disks") + disks + bare("running = "+running, on...)
	}
	root, ordered := disk("root", blank), on("root", theDisk, ", boot_order = 1")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(root, "true", ordered), Check: started(1)},
			{
				Config:      config("", "true"),
				ExpectError: message("domain web on host host-a has", "as its disk root, which it boots from", "running = false"),
			},
			{
				// Nothing was touched.
				Config: config(root, "true", ordered), PlanOnly: true,
				Check: resource.ComposeTestCheckFunc(started(1), has(t, l, "vda")),
			},
			// The remedies work: stop the machine and remove the disk, or replace both.
			{PreConfig: suspend, Config: config(root, "false", ordered)},
			{Config: config("", "false"), Check: gone(file(l, "root"))},
			{Config: config(root, "true", ordered), Check: started(2)},
			{PreConfig: suspend, Taint: []string{theDisk, theMachine}, Config: config(root, "true", ordered), Check: started(3)},
			destroyBare(t, l, config(root, "true", ordered)),
		},
	})
}

func TestAccDisk_ForeignDomainKeepsDisk(t *testing.T) {
	l := acctest.Lab(t)
	define := func() {
		xml := fmt.Sprintf(`<domain type='qemu'><name>theirs</name><memory unit='MiB'>64</memory>
<os><type arch='x86_64'>hvm</type></os><devices><disk type='file' device='disk'><driver name='qemu' type='qcow2'/>
<source file='%s'/><target dev='vda' bus='virtio'/></disk></devices></domain>`, file(l, "root"))
		if err := l.Hosts["host-a"].DefineXML(t.Context(), xml); err != nil {
			t.Fatal(err)
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: acctest.Provider(l, "disks") + disk("root", blank)},
			{
				PreConfig:   define,
				Config:      acctest.Provider(l, "disks"),
				ExpectError: message("domain theirs on host host-a has", "that domain is not this configuration's"),
			},
			{
				Config: acctest.Provider(l, "disks") + disk("root", blank), PlanOnly: true,
			},
			{
				PreConfig: func() { virsh(t, l, "undefine", "theirs") },
				Config:    acctest.Provider(l, "disks"), Check: gone(file(l, "root")),
			},
		},
	})
}

func TestAccDisk_OverlaidVolumeStays(t *testing.T) {
	l := acctest.Lab(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: acctest.Provider(l, "disks") + disk("root", blank) + disk("upper", over("copy-on-write", theDisk)),
				Check:  resource.TestCheckResourceAttr("virtclaim_disk.upper", "volume.images.#", "2"),
			},
			{
				PreConfig: func() {
					virsh(t, l, "vol-create-as", "rust", "theirs", "64M", "--format", "qcow2", "--backing-vol", file(l, "root"),
						"--backing-vol-format", "qcow2")
				},
				Config:      acctest.Provider(l, "disks"),
				ExpectError: message("other volumes are overlays of it, which would be lost with it: rust/theirs"),
			},
			{
				PreConfig: func() { virsh(t, l, "vol-delete", "theirs", "--pool", "rust") },
				Config:    acctest.Provider(l, "disks"), Check: gone(file(l, "root")),
			},
		},
	})
}
