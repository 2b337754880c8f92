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

// In each mode a guest reads the master's content and writes to its own disk.
func TestAccDisk_CopyModesLeaveMasterUnchanged(t *testing.T) {
	for _, mode := range []string{"copy-on-write", "copy-on-read", "clone"} {
		t.Run(mode, func(t *testing.T) {
			l := acctest.Lab(t)
			lun, source := golden(t, l, "the master's content")
			untouched(t, lun.Path)
			console := acctest.NewConsole(t)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps: []resource.TestStep{{
					Config: acctest.Provider(l, "disks") + source + disk("root", over(mode, "virtclaim_volume_binding.golden")) +
						vm(l, console, run(writeAt1M), "", on("root", theDisk, "")),
					Check: func(*terraform.State) error {
						console.Await(t, "READY")
						acctest.Contains(t, console.Await(t, "DISK vda "), "bytes=67108864", "ro=0", "first=the master's content")
						return nil
					},
				}, {
					Config: acctest.Provider(l, "disks") + source + disk("root", over(mode, "virtclaim_volume_binding.golden")),
					Check: func(*terraform.State) error {
						kept := map[string]bool{"copy-on-write": false, "copy-on-read": true, "clone": true}[mode]
						if has := allocates(t, file(l, "root"), 0); has != kept {
							t.Errorf("the head of the master, which the guest read, is in the disk: %t", has)
						}
						if !allocates(t, file(l, "root"), 1<<20) {
							t.Error("what the guest wrote is not in the disk")
						}
						return nil
					},
				}},
			})
		})
	}
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
