//go:build acc

package kernel_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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

func TestMain(m *testing.M) { acctest.Main(m) }

const theKernel = "virtclaim_kernel.linux"

// pushed is the reference of a container image with the distribution's kernel, after change.
func pushed(t *testing.T, l *lab.Lab, tag string, change func(files map[string][]byte)) lab.RegistryImage {
	t.Helper()
	layer := acctest.Must(lab.KernelLayer(acctest.Must(l.Kernel(t.Context()))(t)))(t)
	if change != nil {
		change(layer.Files)
	}
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{Repository: "kernels/linux", Tag: tag, Layers: []lab.ImageLayer{layer}}))(t)
}

// kernel is a kernel on host-a.
func kernel(source, more string) string {
	return fmt.Sprintf(`
resource "virtclaim_kernel" "linux" {
  host       = "host-a"
  usage_type = "fast"
  source     = { %s }
  %s
}
`, source, more)
}

const named = "name = \"linux\""

func fromImage(image string) string { return fmt.Sprintf("container_image = { image = %q }", image) }

// machine boots the kernel; it does not run.
func machine() string {
	return `
resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "96Mi"
  running = false
  machine = { type = "pc", domain_type = "qemu" }
  boot    = virtclaim_kernel.linux.boot
}
`
}

func inPool(t *testing.T, l *lab.Lab) (names []string) {
	t.Helper()
	for _, e := range acctest.Must(os.ReadDir(poolFile(l, "")))(t) {
		names = append(names, e.Name())
	}
	return names
}

func poolFile(l *lab.Lab, name string) string {
	return filepath.Join(l.Hosts["host-a"].Dir, "pools", "ssd", name)
}

func virsh(t *testing.T, l *lab.Lab, args ...string) string {
	t.Helper()
	return acctest.Must(l.Hosts["host-a"].Virsh(context.Background(), args...))(t)
}

func hasFiles(t *testing.T, l *lab.Lab, want ...string) resource.TestCheckFunc {
	t.Helper()
	return func(*terraform.State) error {
		if got := inPool(t, l); strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("the pool has %v, not %v", got, want)
		}
		return nil
	}
}

func boots(attribute, value string) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(theKernel, tfjsonpath.New("boot").AtMapKey(attribute), knownvalue.StringExact(value))
}

func action(is plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(theKernel, is)}}
}

// vmlinuz is the distribution's kernel.
func vmlinuz(t *testing.T, l *lab.Lab) (content []byte, release string) {
	t.Helper()
	root := acctest.Must(l.Kernel(t.Context()))(t).Root
	path := acctest.Must(filepath.Glob(filepath.Join(root, "boot/vmlinuz-*")))(t)[0]
	return acctest.Must(os.ReadFile(path))(t), strings.TrimPrefix(filepath.Base(path), "vmlinuz-")
}

func TestAccKernel_Life(t *testing.T) {
	l := acctest.Lab(t)
	first, second := pushed(t, l, "one", nil), pushed(t, l, "two", func(f map[string][]byte) { f["etc/other"] = nil })
	content, release := vmlinuz(t, l)
	config := func(image, more string) string {
		return acctest.Provider(l, "kernels") + kernel(fromImage(image), named+"\n"+more)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: config(first.Reference, ""),
				ConfigStateChecks: []statecheck.StateCheck{
					boots("kernel", poolFile(l, "linux")), boots("initrd", poolFile(l, "linux-initrd")), boots("cmdline", "console=ttyS0 quiet panic=-1"),
					statecheck.ExpectKnownValue(theKernel, tfjsonpath.New("release"), knownvalue.StringExact(release)),
					statecheck.ExpectKnownValue(theKernel, tfjsonpath.New("digest"), knownvalue.StringExact(first.Digest)),
				},
				Check: resource.ComposeTestCheckFunc(hasFiles(t, l, "linux", "linux-initrd"), func(*terraform.State) error {
					if is := acctest.Must(os.ReadFile(poolFile(l, "linux")))(t); !bytes.HasPrefix(is, content) {
						t.Error("the kernel is another one")
					}
					return nil
				}),
			},
			{Config: config(first.Reference, ""), PlanOnly: true},
			{
				Config: config(first.Reference, "cmdline = \"console=ttyS0 debug\"") + machine(), ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check: func(*terraform.State) error {
					acctest.Contains(t, virsh(t, l, "dumpxml", "web"), "<cmdline>console=ttyS0 debug</cmdline>", "<initrd>"+poolFile(l, "linux-initrd"))
					return nil
				},
			},
			{Config: config(first.Reference, ""), Check: hasFiles(t, l, "linux", "linux-initrd")},
			{
				ResourceName: theKernel, ImportState: true, ImportStateId: "host-a/ssd/linux", ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"source", "digest", "release", "usage_type", "timeouts"},
			},
			{
				PreConfig: func() { virsh(t, l, "vol-delete", "linux-initrd", "--pool", "ssd") },
				Config:    config(first.Reference, ""), ConfigPlanChecks: action(plancheck.ResourceActionReplace), Check: hasFiles(t, l, "linux", "linux-initrd"),
			},
			{
				PreConfig: func() {
					virsh(t, l, "vol-delete", "linux", "--pool", "ssd")
					virsh(t, l, "vol-delete", "linux-initrd", "--pool", "ssd")
				},
				Config: config(first.Reference, ""), ConfigPlanChecks: action(plancheck.ResourceActionReplace), Check: hasFiles(t, l, "linux", "linux-initrd"),
			},
			{
				Config: config(second.Reference, ""), ConfigPlanChecks: action(plancheck.ResourceActionReplace), Check: hasFiles(t, l, "linux", "linux-initrd"),
			},
		},
		CheckDestroy: hasFiles(t, l),
	})
}

// A kernel that is replaced with create_before_destroy goes after machines have changed to the new one.
func TestAccKernel_CreatedBeforeDestroyed(t *testing.T) {
	l := acctest.Lab(t)
	first, second := pushed(t, l, "one", nil), pushed(t, l, "two", func(f map[string][]byte) { f["etc/other"] = nil })
	config := func(image string) string {
		return acctest.Provider(l, "kernels") + kernel(fromImage(image), "name_prefix = \"linux-\"\nlifecycle { create_before_destroy = true }") + machine()
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{Config: config(first.Reference)}, {Config: config(second.Reference)}, {
			PreConfig: func() {
				name := inPool(t, l)[0]
				xml := strings.NewReplacer("<name>web</name>", "<name>foreign</name>").Replace(virsh(t, l, "dumpxml", "web"))
				xml = regexp.MustCompile("(?s)<uuid>.*?</uuid>|<metadata>.*</metadata>").ReplaceAllString(xml, "")
				path := filepath.Join(t.TempDir(), "foreign.xml")
				if err := os.WriteFile(path, []byte(xml), 0o600); err != nil {
					t.Fatal(err)
				}
				virsh(t, l, "define", path)
				acctest.Contains(t, xml, name)
			},
			Config: acctest.Provider(l, "kernels"), ExpectError: regexp.MustCompile(`domain[\s│]+foreign[\s│]+reads[\s│]+it(?s:.)*create_before_destroy`),
		}, {
			PreConfig: func() { virsh(t, l, "undefine", "foreign") }, Config: acctest.Provider(l, "kernels"), Check: hasFiles(t, l),
		}},
	})
}

func TestAccKernel_Sources(t *testing.T) {
	l := acctest.Lab(t)
	web, packed := acctest.Must(l.Web(t.Context()))(t), acctest.Must(l.Kernel(t.Context()))(t)
	deb := acctest.Must(os.ReadFile(packed.Package))(t)
	served := acctest.Must(web.AddFile("linux.deb", int64(len(deb)), deb))(t)
	content, release := vmlinuz(t, l)
	alone := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(alone, content, 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(source string) string { return acctest.Provider(l, "kernels") + kernel(source, named) }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config:            config(fmt.Sprintf("url = { url = %q }", served.URL("http", web.HTTP))),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(theKernel, tfjsonpath.New("release"), knownvalue.StringExact(release))},
			},
			{
				Config: config(fmt.Sprintf("file = { path = %q }", alone)), ConfigPlanChecks: action(plancheck.ResourceActionReplace),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(theKernel, tfjsonpath.New("release"), knownvalue.Null())},
			},
			{
				PreConfig: func() {
					if err := os.WriteFile(alone, append(content, 1), 0o600); err != nil {
						t.Error(err)
					}
				},
				Config: config(fmt.Sprintf("file = { path = %q }", alone)), ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			},
			{
				PreConfig: func() { _ = os.Remove(alone) },
				Config:    config(fmt.Sprintf("file = { path = %q }", alone)), PlanOnly: true,
			},
			{
				Config:            config("host_path = \"/boot/vmlinuz\""),
				ConfigStateChecks: []statecheck.StateCheck{boots("kernel", "/boot/vmlinuz"), boots("initrd", poolFile(l, "linux-initrd"))},
				Check:             hasFiles(t, l, "linux-initrd"),
			},
			{
				Config: acctest.Provider(l, "kernels") + kernel("host_path = \"/boot/vmlinuz\"", "name_prefix = \"linux-\""),
				Check: func(*terraform.State) error {
					if got := strings.Join(inPool(t, l), " "); !regexp.MustCompile(`^linux-[a-z0-9]{10}-initrd$`).MatchString(got) {
						return fmt.Errorf("the pool has %s", got)
					}
					return nil
				},
			},
		},
		CheckDestroy: hasFiles(t, l),
	})
}

func TestAccKernel_Refused(t *testing.T) {
	l := acctest.Lab(t)
	none := pushed(t, l, "none", func(f map[string][]byte) {
		maps.DeleteFunc(f, func(string, []byte) bool { return true })
		f["etc/motd"] = nil
	})
	without := pushed(t, l, "without", func(f map[string][]byte) {
		maps.DeleteFunc(f, func(name string, _ []byte) bool { return strings.HasSuffix(name, "virtio_blk.ko") })
	})
	foreign := pushed(t, l, "foreign", func(f map[string][]byte) {
		for name := range f {
			if strings.HasPrefix(name, "boot/") {
				f[name] = append(make([]byte, 0x38), "ARM\x64"...)
			}
		}
	})
	config := func(more string) string { return acctest.Provider(l, "kernels") + more }
	var steps []resource.TestStep
	for _, c := range []struct{ config, want string }{
		{kernel(fromImage(none.Reference), named), "there is no kernel in it"},
		{kernel(fromImage(without.Reference), named), "has no module virtio_blk"},
		{kernel(fromImage(foreign.Reference), named), "the kernel is for arm64, and the host is of the architecture x86_64"},
		{kernel("file = { path = \"/dev/null\" }", named), "is a device"},
		{kernel("url = { url = \"ftp://example.org/linux.deb\" }", named), "only http and https are read"},
		{kernel("host_path = \"vmlinuz\"", named), "absolute"},
		{kernel("host_path = \"/boot/vmlinuz\"", "name = \"virtclaim-linux\""), "Reserved name"},
		{kernel("host_path = \"/boot/vmlinuz\"\nfile = { path = \"/boot/vmlinuz\" }", named), "one"},
		{strings.Replace(kernel("host_path = \"/boot/vmlinuz\"", named), "fast", "none", 1), "Unknown usage type"},
	} {
		words := regexp.MustCompile(`(\s|\\ )+`).ReplaceAllString(regexp.QuoteMeta(c.want), `[\s│]+`)
		steps = append(steps, resource.TestStep{Config: config(c.config), ExpectError: regexp.MustCompile(words)})
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: acctest.Factories(), Steps: steps, CheckDestroy: hasFiles(t, l)})
}

func TestAccKernel_Interrupted(t *testing.T) {
	l := acctest.Lab(t)
	image := pushed(t, l, "one", nil)
	config := kernel(fromImage(image.Reference), named)
	for name, s := range map[string]struct {
		before, after string
		calls         map[lab.Call]int
	}{
		"create": {"", config, map[lab.Call]int{
			lab.CallCreateXML: 2, lab.CallDefine: 2, lab.CallVolumeCreate: 2, lab.CallVolumeUpload: 4, lab.CallUndefine: 2, lab.CallSecretDefine: 2,
		}},
		"destroy": {config, "\n", map[lab.Call]int{lab.CallVolumeDelete: 2, lab.CallSecretUndefine: 2}},
	} {
		for _, f := range acctest.Points(s.calls, acctest.CutsAndKills) {
			t.Run(name+"/"+f.String(), func(t *testing.T) {
				l := acctest.Lab(t)
				cli, tap := acctest.Tapped(t, l, "kernels")
				if s.before != "" {
					cli.Write("main.tf", s.before)
					cli.Must("apply", "-auto-approve", "-no-color")
				}
				cli.Write("main.tf", s.after)
				_, _ = acctest.Interrupt(t, cli, tap, f) // the apply may survive a cut
				acctest.PutRight(t, cli, nil)
				cli.Must("destroy", "-auto-approve", "-no-color")
				if left := inPool(t, l); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			})
		}
	}
}

// A kernel is not deleted for what is none: the plan refuses it. Its file may be missing, in another folder, too.
func TestAccKernel_JudgedBeforeReplacement(t *testing.T) {
	l := acctest.Lab(t)
	content, _ := vmlinuz(t, l)
	path := filepath.Join(t.TempDir(), "vmlinuz")
	write := func(content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(content)
	cli := acctest.NewCLI(t)
	configure := func(source string) { cli.Write("main.tf", acctest.Provider(l, "kernels")+kernel(source, named)) }
	fromFile := func(path string) string { return fmt.Sprintf("file = { path = %q }", path) }
	configure(fromFile(path))
	cli.Must("apply", "-auto-approve", "-no-color")
	was := acctest.Must(os.ReadFile(poolFile(l, "linux")))(t)
	pointer := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 4\n")
	web := acctest.Must(l.Web(t.Context()))(t)
	served := acctest.Must(web.AddContent("vmlinuz", pointer))(t)
	acctest.Undo(t, func(context.Context) error { return web.RemoveFile(served) })
	write(pointer)
	for source, want := range map[string]string{
		fromFile(path):           "a pointer of Git LFS",
		fromFile(path + "-none"): "there is no file",
		fmt.Sprintf("url = { url = %q }", served.URL("http", web.HTTP)): "a pointer of Git LFS",
	} {
		configure(source)
		out, err := cli.Run("plan", "-no-color")
		if err == nil || !regexp.MustCompile(strings.ReplaceAll(want, " ", `\s+(?:│\s+)?`)).MatchString(out) {
			t.Errorf("%s: %q is missing (%v):\n%s", source, want, err, out)
		}
	}
	configure(fromFile(filepath.Join(t.TempDir(), "vmlinuz")))
	acctest.Contains(t, cli.Must("plan", "-no-color"), "0 to add, 1 to change, 0 to destroy")
	if !bytes.Equal(acctest.Must(os.ReadFile(poolFile(l, "linux")))(t), was) {
		t.Error("the kernel has changed")
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}
