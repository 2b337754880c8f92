//go:build acc

package virtualmachine_test

import (
	"fmt"
	"maps"
	"slices"
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

// named is the configuration with other names for the resources data.
func named(name, config string) string {
	return strings.NewReplacer(`"virtclaim_volume_binding" "data"`, fmt.Sprintf("%q %q", "virtclaim_volume_binding", name),
		`name        = "data"`, fmt.Sprintf("name        = %q", name)).Replace(config)
}

// copyOf is a copy of a binding.
func copyOf(binding, name, mode string) string {
	return fmt.Sprintf(`
resource "virtclaim_disk" %[1]q {
  host       = "host-a"
  name       = %[1]q
  usage_type = "fast"
  copy_mode  = %[2]q
  source     = { volume = virtclaim_volume_binding.%[3]s.volume }
}
`, name, mode, binding)
}

// told is a disk that the guest reports with its key as its serial number.
func told(key, volume string) string {
	return fmt.Sprintf("%[1]s = { volume = %[2]s.volume, bus = \"virtio\", serial = %[1]q }", key, volume)
}

// writeAll is a command line that has the guest write a text to each of its n disks.
func writeAll(n int, text string) string {
	line := ""
	for i := range n {
		line += fmt.Sprintf("virtclaim.write=vd%c:%s ", 'a'+i, text)
	}
	return line
}

// Through each protocol a guest reads the content of the storage; what it writes is in the storage if it may write; and an overlay and a
// clone of each leave it unchanged. One guest has them all.
func TestAccVirtualMachine_EachProtocol(t *testing.T) {
	l := acctest.Lab(t)
	names := slices.Sorted(maps.Keys(acctest.Stores))
	stores, direct, copied := map[string]acctest.Storage{}, acctest.NewConsole(t), acctest.NewConsole(t)
	originals, masters := acctest.Provider(l, "protocols"), acctest.Provider(l, "protocols")
	var disks, copies []string
	capacities := []resource.TestCheckFunc{}
	for _, name := range names {
		s := acctest.Stores[name](t, l)
		stores[name] = s
		originals += named(name, bound(s.Source, mode(s), "host-a", "host-b"))
		disks = append(disks, told(name, "virtclaim_volume_binding."+name))
		capacities = append(capacities, resource.TestCheckResourceAttr("virtclaim_volume_binding."+name, "volume.capacity", fmt.Sprint(acctest.StorageSize)))
		masters += named(name, bound(s.Source, "read-shared", "host-a", "host-b"))
		for suffix, copyMode := range map[string]string{"-overlay": "copy-on-write", "-clone": "clone"} {
			masters += copyOf(name, name+suffix, copyMode)
			copies = append(copies, told(name+suffix, "virtclaim_disk."+name+suffix))
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: originals + machine{disks: disks, log: direct.Path(), cmdline: writeAll(len(disks), written)}.hcl(l),
			Check: resource.ComposeAggregateTestCheckFunc(append(capacities, func(*terraform.State) error {
				for _, name := range names {
					writes(t, name, stores[name], direct)
				}
				return nil
			})...),
		}, {
			Config: masters + machine{name: "copies", disks: copies, log: copied.Path(), cmdline: writeAll(len(copies), "only-the-copy")}.hcl(l),
			Check: func(*terraform.State) error {
				copied.Await(t, "READY")
				for _, name := range names {
					for _, suffix := range []string{"-overlay", "-clone"} {
						seen := copied.Await(t, "serial="+name+suffix+" ")
						acctest.Contains(t, seen, "ro=0", "first="+acctest.Known, fmt.Sprintf("bytes=%d", acctest.StorageSize))
						copied.Await(t, "WROTE "+strings.Fields(seen)[1]+" ")
					}
					// The first guest wrote to the master, and no guest since.
					if got := stored(t, stores[name]); got != written {
						t.Errorf("the master of protocol %s has %q now", name, got)
					}
				}
				return nil
			},
		}},
	})
}

// mode is the exclusive mode of the storage, or read-shared if it can't be written.
func mode(s acctest.Storage) string {
	if s.Stored == nil {
		return "read-shared"
	}
	return "write-exclusive"
}

// writes checks that the guest read the content of the storage on the disk with that serial number, and that the storage has what the guest
// wrote, if it may write.
func writes(t *testing.T, serial string, s acctest.Storage, console acctest.Console) {
	t.Helper()
	console.Await(t, "READY")
	seen := console.Await(t, "serial="+serial+" ")
	acctest.Contains(t, seen, "first="+acctest.Known, fmt.Sprintf("bytes=%d", acctest.StorageSize))
	if s.Stored == nil {
		acctest.Contains(t, seen, "ro=1")
		return
	}
	console.Await(t, "WROTE "+strings.Fields(seen)[1]+" ")
	if got := stored(t, s); got != written {
		t.Errorf("the storage of %s has %q where the guest wrote", serial, got)
	}
}

// stored is what the storage has where guests write; read-only storage is as if it had been written.
func stored(t *testing.T, s acctest.Storage) string {
	t.Helper()
	if s.Stored == nil {
		return written
	}
	return s.Stored(4096, len(written))
}
