//go:build acc

package virtualmachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

const written = "from-the-guest"

// bound is a binding of a source.
func bound(source, mode string, hosts ...string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name        = "data"
  hosts       = ["%s"]
  access_mode = %q
  source      = { %s }
}
`, strings.Join(hosts, `", "`), mode, source)
}

// copyOf is a copy of the binding.
func copyOf(mode string) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = "host-a"
  name       = %[1]q
  usage_type = "fast"
  copy_mode  = %[1]q
  source     = { volume = virtclaim_volume_binding.data.volume }
}
`, mode)
}

// Through each protocol a guest reads the content of the storage; what it writes is in the storage if it may write; and an overlay and a
// clone of each leave it unchanged.
func TestAccVirtualMachine_EachProtocol(t *testing.T) {
	for name, store := range acctest.Stores {
		t.Run(name, func(t *testing.T) {
			l := acctest.Lab(t)
			s := store(t, l)
			direct, copied := acctest.NewConsole(t), acctest.NewConsole(t)
			steps := []resource.TestStep{{
				Config: acctest.Provider(l, "protocols") + bound(s.Source, mode(s), "host-a", "host-b") + machine{
					disks: []string{disk("data", "data", "virtio")}, log: direct.Path(), cmdline: "virtclaim.write=vda:" + written,
				}.hcl(l),
				Check: resource.ComposeAggregateTestCheckFunc(
					resource.TestCheckResourceAttr("virtclaim_volume_binding.data", "volume.capacity", fmt.Sprint(acctest.StorageSize)),
					func(*terraform.State) error { return writes(t, s, direct) },
				),
			}, {
				Config: acctest.Provider(l, "protocols") + bound(s.Source, "read-shared", "host-a", "host-b") + copyOf("copy-on-write") + copyOf("clone") + machine{
					disks: []string{
						`a = { volume = virtclaim_disk.copy-on-write.volume, boot_order = 1 }`,
						`b = { volume = virtclaim_disk.clone.volume, boot_order = 2 }`,
					},
					log: copied.Path(), cmdline: "virtclaim.write=vda:overlay virtclaim.write=vdb:the-clone", name: "copies",
				}.hcl(l),
				Check: func(*terraform.State) error {
					copied.Await(t, "READY")
					for _, disk := range []string{"vda", "vdb"} {
						acctest.Contains(t, copied.Await(t, "DISK "+disk+" "), "ro=0", "first="+acctest.Known, fmt.Sprintf("bytes=%d", acctest.StorageSize))
						copied.Await(t, "WROTE "+disk+" ")
					}
					return unchanged(s)
				},
			}}
			resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: acctest.Factories(), Steps: steps})
		})
	}
}

// mode is the exclusive mode of the storage, or read-shared if it can't be written.
func mode(s acctest.Storage) string {
	if s.Stored == nil {
		return "read-shared"
	}
	return "write-exclusive"
}

// writes checks that the guest read the content of the storage, and that the storage has what the guest wrote, if it may write.
func writes(t *testing.T, s acctest.Storage, console acctest.Console) error {
	t.Helper()
	console.Await(t, "READY")
	seen := console.Await(t, "DISK vda ")
	acctest.Contains(t, seen, "first="+acctest.Known, fmt.Sprintf("bytes=%d", acctest.StorageSize))
	if s.Stored == nil {
		acctest.Contains(t, seen, "ro=1")
		return nil
	}
	console.Await(t, "WROTE vda ")
	if got := s.Stored(4096, len(written)); got != written {
		return fmt.Errorf("the storage has %q where the guest wrote", got)
	}
	return nil
}

// unchanged fails if a guest wrote to the master of its copy: the storage has only what the first guest wrote.
func unchanged(s acctest.Storage) error {
	if s.Stored == nil {
		return nil
	}
	if got := s.Stored(4096, len(written)); got != written {
		return fmt.Errorf("the master has %q now", got)
	}
	return nil
}
