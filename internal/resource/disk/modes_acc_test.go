//go:build acc

package disk_test

import (
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// writeAt1M writes where the guest reads nothing by itself.
const writeAt1M = "echo from-the-guest | dd of=/dev/vda bs=1M seek=1 conv=fsync"

// run is the kernel parameter that has the guest run a command.
func run(command string) string {
	return "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte(command))
}

// In each mode a guest reads the master's content and writes to its own disk. One guest has a disk of each.
func TestAccDisk_CopyModesLeaveMasterUnchanged(t *testing.T) {
	l := acctest.Lab(t)
	lun, config := golden(t, l, "the master's content")
	untouched(t, lun.Path)
	console := acctest.NewConsole(t)
	config = acctest.Provider(l, "disks") + config
	modes := []struct {
		mode string
		// keeps is whether the disk has a copy of what the guest has read.
		keeps bool
	}{{"copy-on-write", false}, {"copy-on-read", true}, {"clone", true}}
	var disks []string
	for n, m := range modes {
		config += disk(m.mode, over(m.mode, "virtclaim_volume_binding.golden"))
		disks = append(disks, on(string(rune('a'+n)), "virtclaim_disk."+m.mode, ""))
	}
	const write = "for d in a b c; do echo guest-of-vd$d | dd of=/dev/vd$d bs=1M seek=1 conv=fsync; done"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config + vm(l, console, "virtclaim.disks=3 "+run(write), "", disks...),
			Check: func(*terraform.State) error {
				console.Await(t, "READY")
				for _, target := range []string{"vda", "vdb", "vdc"} {
					acctest.Contains(t, console.Await(t, "DISK "+target+" "), "bytes=67108864", "ro=0", "first=the master's content")
				}
				return nil
			},
		}, {
			Config: config,
			Check: func(*terraform.State) error {
				for _, m := range modes {
					if has := allocates(t, file(l, m.mode), 0); has != m.keeps {
						t.Errorf("%s: the head of the master, which the guest read, is in the disk: %t", m.mode, has)
					}
					if !allocates(t, file(l, m.mode), 1<<20) {
						t.Errorf("%s: what the guest wrote is not in the disk", m.mode)
					}
				}
				return nil
			},
		}},
	})
}

// allocates reports whether a qcow2 image itself has the data at an offset.
func allocates(t *testing.T, path string, offset int64) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "qemu-img", "map", "--force-share", "--output=json", path).Output()
	if err != nil {
		t.Fatalf("qemu-img map: %v", err)
	}
	var parts []struct {
		Start, Length int64
		Data          bool
	}
	if err := json.Unmarshal(out, &parts); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if p.Start <= offset && offset < p.Start+p.Length {
			return p.Data
		}
	}
	return false
}
