//go:build acc

package kernel_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// archiveOf is a tar archive of files, and of hard links to others.
func archiveOf(t *testing.T, files map[string][]byte, links map[string]string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "linux.tar")
	out := acctest.Must(os.Create(path))(t)
	w := tar.NewWriter(out)
	var err error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}))
		_, failed := w.Write(files[name])
		err = errors.Join(err, failed)
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: links[name]}))
	}
	if err := errors.Join(err, w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// bootable is the layers of a bootable container image: its kernel and modules are hard links to ostree's objects, those of the kernel in
// a layer below.
func bootable(t *testing.T, files map[string][]byte) []lab.ImageLayer {
	t.Helper()
	objects := []map[string][]byte{{}, {}}
	links := map[string]string{}
	for name, content := range files {
		object := fmt.Sprintf("sysroot/ostree/repo/objects/%02x/%d.file", len(name), len(links))
		at := 1
		if folder, isKernel := strings.CutPrefix(name, "boot/vmlinuz-"); isKernel {
			at, name = 0, "lib/modules/"+folder+"/vmlinuz"
		}
		objects[at][object], links["usr/"+name] = content, object
	}
	return []lab.ImageLayer{{Archive: archiveOf(t, objects[0], nil)}, {Archive: archiveOf(t, objects[1], links)}}
}

// A machine boots the kernel of a bootable container image, and that of an archive of Alpine's layout has the same modules.
func TestAccKernel_BootsAsItComes(t *testing.T) {
	l := acctest.Lab(t)
	registry, packed := acctest.Must(l.Registry(t.Context()))(t), acctest.Must(l.Kernel(t.Context()))(t)
	files := acctest.Must(lab.KernelLayer(packed))(t).Files
	linux := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{Repository: "kernels/linux", Tag: "bootable", Layers: bootable(t, files)}))(t)
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "kernels/program", Tag: "1", Entrypoint: []string{"/bin/busybox", "sh", "-c", "echo the kernel $(/bin/busybox uname -r) runs"},
		Layers: []lab.ImageLayer{{Programs: map[string][]byte{"bin/busybox": acctest.Must(os.ReadFile(packed.BusyBox))(t)}}},
	}))(t)
	_, release := vmlinuz(t, l)
	alpine := maps.Clone(files)
	alpine["boot/vmlinuz-virt"] = alpine["boot/vmlinuz-"+release]
	delete(alpine, "boot/vmlinuz-"+release)
	console := acctest.NewConsole(t)
	machine := fmt.Sprintf(`
resource "virtclaim_disk" "root" {
  host       = "host-a"
  name       = "root"
  usage_type = "fast"
  source     = { root_filesystem = { image = %q } }
}

resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "96Mi"
  machine = { type = "pc", domain_type = "qemu" }
  boot    = virtclaim_kernel.linux.boot
  serial  = { log_file = %q }
  disks   = { root = { volume = virtclaim_disk.root.volume } }
  run     = { image = virtclaim_disk.root.image_configuration }
  lifecycle { ignore_changes = [running] }
}
`, image.Reference, console.Path())
	config := func(source string) string {
		return acctest.Provider(l, "kernels") + kernel(source, named+"\n  cmdline = \"console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests rodata=off\"")
	}
	var initrd []byte
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: config(fromImage(linux.Reference)) + machine,
			Check: func(*terraform.State) error {
				console.Await(t, "the kernel "+release+" runs")
				initrd = acctest.Must(os.ReadFile(poolFile(l, "linux-initrd")))(t)
				return nil
			},
		}, {
			Config: config(fromImage(linux.Reference)),
		}, {
			Config: config(fmt.Sprintf("file = { path = %q }", archiveOf(t, alpine, nil))), ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(theKernel, tfjsonpath.New("release"), knownvalue.StringExact(release))},
			Check: func(*terraform.State) error {
				if is := acctest.Must(os.ReadFile(poolFile(l, "linux-initrd")))(t); string(is) != string(initrd) {
					t.Error("the modules of Alpine's layout are others")
				}
				return nil
			},
		}},
		CheckDestroy: hasFiles(t, l),
	})
}
