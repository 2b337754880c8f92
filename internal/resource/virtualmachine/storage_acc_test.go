//go:build acc

package virtualmachine_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Ceph does not refuse a wrong key, it does not answer: the creation of the binding fails after half a minute at most.
func TestAccVirtualMachine_WrongCephKey(t *testing.T) {
	l := acctest.Lab(t)
	ceph, image := acctest.Ceph(t, l)
	wrong := ceph.Key[:20] + strings.Repeat("A", 8) + ceph.Key[28:] // it has the right form
	// As on most hosts, Ceph's clients have no timeout.
	impatient := filepath.Join(l.Hosts["host-a"].Dir, "ceph", "ceph.conf")
	if err := os.Rename(impatient, impatient+".off"); err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, func(context.Context) error { return os.Rename(impatient+".off", impatient) })
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "storage") + bound(fmt.Sprintf(
				`rbd = { monitors = [%q], pool = %q, image = %q, username = %q, key_wo = %q, key_wo_version = 1 }`,
				ceph.Monitors[0], image.Pool, image.Image, ceph.User, wrong), "write-exclusive", "host-a"),
			ExpectError: message("host host-a can't open "+image.Pool+"/"+image.Image+" at "+ceph.Monitors[0],
				"no answer within 30s", "asks as the user "+ceph.User+" with the libvirt secret"),
		}},
	})
}

func TestAccVirtualMachine_UntrustedCertificate(t *testing.T) {
	l := acctest.Lab(t)
	server, file := acctest.Web(t, l)
	console := acctest.NewConsole(t)
	source := fmt.Sprintf("http = { url = %q", file.URL("https", server.Untrusted))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config:      acctest.Provider(l, "storage") + bound(source+" }", "read-shared", "host-a"),
			ExpectError: message("host host-a can't open /"+file.Name+" at "+server.Untrusted, "certificate"),
		}, {
			Config: acctest.Provider(l, "storage") + bound(source+", insecure = true }", "read-shared", "host-a") +
				machine{disks: []string{disk("data", "data", "virtio")}, log: console.Path()}.hcl(l),
			Check: func(*terraform.State) error {
				acctest.Contains(t, console.Await(t, "DISK vda "), "ro=1", "first="+acctest.Known)
				return nil
			},
		}},
	})
}

// Machines on two hosts write to the same storage, and each sees the other's writes.
func TestAccVirtualMachine_WriteShared(t *testing.T) {
	l := acctest.Lab(t)
	store := acctest.Stores["nbd"](t, l)
	config := acctest.Provider(l, "storage") + bound(store.Source, "write-shared", "host-a", "host-b")
	one, two := acctest.NewConsole(t), acctest.NewConsole(t)
	first := machine{name: "one", disks: []string{disk("data", "data", "virtio")}, log: one.Path(), cmdline: "virtclaim.write=vda:" + written}.hcl(l)
	second := machine{
		name: "two", host: "host-b", disks: []string{disk("data", "data", "virtio")}, log: two.Path(),
		cmdline: "virtclaim.run=" + base64.StdEncoding.EncodeToString([]byte("dd if=/dev/vda bs=4096 skip=1 count=1 2>/dev/null | head -c 14; echo; echo second | dd of=/dev/vda bs=4096 seek=2 conv=fsync")),
	}.hcl(l)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config + first,
			Check: func(*terraform.State) error {
				one.Await(t, "WROTE vda ")
				return nil
			},
		}, {
			Config: config + first + second,
			Check: func(*terraform.State) error {
				two.Await(t, "READY")
				two.Await(t, written)
				if got := store.Stored(8192, 6); got != "second" {
					return fmt.Errorf("the storage has %q where the second machine wrote", got)
				}
				return nil
			},
		}},
	})
}

// A host as Debian configures it: QEMU is not root, and libvirt makes it the owner of the files that it opens.
func TestAccVirtualMachine_UnprivilegedQEMU(t *testing.T) {
	l := acctest.Lab(t)
	host := acctest.Must(l.DefaultConfigHost(t.Context()))(t)
	folder := filepath.Join(host.Dir, "pools", "mounted")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	acctest.ImageIn(t, folder, "disk.img")
	acctest.Claim(t, l, "stock", "golden", acctest.LUN(t, l, true, acctest.Known))
	acctest.Claim(t, l, "stock", "data", acctest.LUN(t, l, false, acctest.Known))
	onHost, here, err := host.AddConsole("stock.log")
	if err != nil {
		t.Fatal(err)
	}
	provider := strings.Replace(acctest.Provider(l, "stock"), "hosts = {",
		fmt.Sprintf("hosts = {\n    host-c = { uri = %q, storage = { fast = \"ssd\" } }", host.URI), 1)
	config := provider + claimBinding("stock", "golden", "read-shared", "host-a", "host-c") + claimBinding("stock", "data", "write-exclusive", "host-c") +
		strings.Replace(bound(fmt.Sprintf("file = { path = %q }", filepath.Join(host.Pools, "mounted", "disk.img")), "write-exclusive", "host-c"),
			`"data"`, `"file"`, 2) +
		strings.ReplaceAll(copyOf("golden", "copy-on-write", "copy-on-write")+copyOf("golden", "clone", "clone"), `"host-a"`, `"host-c"`)
	console := acctest.ConsoleAt(here)
	vm := machine{
		host: "host-c", log: onHost, disks: []string{
			"a = { volume = virtclaim_disk.copy-on-write.volume, boot_order = 1 }", "b = { volume = virtclaim_disk.clone.volume, boot_order = 2 }",
			"c = { volume = virtclaim_volume_binding.data.volume, boot_order = 3 }", "d = { volume = virtclaim_volume_binding.file.volume, boot_order = 4 }",
		},
		cmdline: "virtclaim.write=vda:overlay virtclaim.write=vdb:clone virtclaim.write=vdc:claim virtclaim.write=vdd:file",
	}.hcl(l)
	vm = strings.NewReplacer(l.Guest.Kernel, host.Guest.Kernel, l.Guest.Initrd, host.Guest.Initrd).Replace(vm)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config + vm,
			Check: func(*terraform.State) error {
				console.Await(t, "READY")
				for _, disk := range []string{"vda", "vdb", "vdc", "vdd"} {
					acctest.Contains(t, console.Await(t, "DISK "+disk+" "), "first="+acctest.Known)
					console.Await(t, "WROTE "+disk+" ")
				}
				return nil
			},
		}},
	})
	if got := acctest.StoredAt(t, filepath.Join(folder, "disk.img"), 4096, 4); got != "file" {
		t.Errorf("the file has %q where the guest wrote", got)
	}
}

// GlusterFS has its own test, for one protocol of all: each close of an image takes ten seconds.
func TestAccVirtualMachine_GlusterFS(t *testing.T) {
	l := acctest.Lab(t)
	server := acctest.Must(l.Gluster(t.Context()))(t)
	image := acctest.Must(server.AddImage(acctest.StorageSize, []byte(acctest.Known)))(t)
	acctest.Undo(t, func(context.Context) error { return server.RemoveImage(image) })
	console := acctest.NewConsole(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "storage") +
				bound(fmt.Sprintf("gluster = { servers = [%q], volume = %q, path = %q }", server.Server, image.Volume, image.Image), "write-exclusive", "host-a") +
				machine{disks: []string{told("data", "virtclaim_volume_binding.data")}, log: console.Path(), cmdline: "virtclaim.write=vda:" + written}.hcl(l),
			Check: func(*terraform.State) error {
				writes(t, "data", acctest.Storage{Stored: acctest.InFile(t, image.Path)}, console)
				return nil
			},
		}},
	})
}
