//go:build acc

package disk_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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

func rootFilesystem(reference string) string {
	return fmt.Sprintf("source = { root_filesystem = { image = %q } }", reference)
}

// unpulled is the same without its registry.
func unpulled(image lab.RegistryImage) string {
	return fmt.Sprintf("source = { root_filesystem = { image = %q, pull_policy = \"Never\" } }", image.ByDigest)
}

// layersOf are layers with a file of that name each, which has its name as its content.
func layersOf(names ...string) (layers []lab.ImageLayer) {
	for _, name := range names {
		layers = append(layers, lab.ImageLayer{Files: map[string][]byte{"etc/" + name: []byte(name)}})
	}
	return layers
}

func pushedLayers(t *testing.T, l *lab.Lab, tag string, names ...string) (*lab.Registry, lab.RegistryImage) {
	t.Helper()
	registry := acctest.Must(l.Registry(t.Context()))(t)
	return registry, acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disks/root", Tag: tag, Layers: layersOf(names...), Entrypoint: []string{"/bin/" + tag},
	}))(t)
}

// hasFiles fails the test unless a disk has a file system without a fault, with these files.
func hasFiles(t *testing.T, path string, names ...string) {
	t.Helper()
	raw, at := filepath.Join(t.TempDir(), "raw"), t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", path, raw)
	run("e2fsck", "-fn", raw)
	run("mount", "-o", "loop,ro", raw, at)
	defer run("umount", at)
	var got []string
	for _, e := range acctest.Must(os.ReadDir(filepath.Join(at, "etc")))(t) {
		got = append(got, read(t, filepath.Join(at, "etc", e.Name())))
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s has the files %v", path, got)
	}
}

// Disks share the layers that their images have in common, each is pulled and uploaded once, and the last disk takes them with it.
func TestAccDisk_RootFilesystem(t *testing.T) {
	l := acctest.Lab(t)
	registry, one := pushedLayers(t, l, "one", "base", "python", "app")
	_, two := pushedLayers(t, l, "two", "base", "python", "other")
	pulls := registry.Pulls()
	first := disk("root", rootFilesystem(one.Reference))
	all := first + disk("second", "size = \"20Gi\"\n"+rootFilesystem(one.Reference)) + disk("third", rootFilesystem(two.Reference))
	const configuration = "image_configuration"
	has := func(bases, disks, blobs int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			b, d := inPool(t, l)
			if pulled := registry.Pulls() - pulls; len(b) != bases || len(d) != disks || pulled != blobs {
				return fmt.Errorf("the pool has %d shared images and %d disks, and %d blobs were pulled", len(b), len(d), pulled)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "disks") + first,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectUnknownValue(theDisk, tfjsonpath.New(configuration)),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				known("root", "digest", one.Digest),
				statecheck.ExpectKnownValue(theDisk, tfjsonpath.New("volume").AtMapKey("capacity"), knownvalue.Int64Exact(16<<30)),
				statecheck.ExpectKnownValue(theDisk, tfjsonpath.New(configuration).AtMapKey("entrypoint"),
					knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("/bin/one")})),
				statecheck.ExpectKnownValue(theDisk, tfjsonpath.New(configuration).AtMapKey("architecture"), knownvalue.StringExact("amd64")),
			},
			Check: resource.ComposeTestCheckFunc(has(3, 1, 4), func(*terraform.State) error { // a configuration and three layers
				hasFiles(t, file(l, "root"), "app", "base", "python")
				return nil
			}),
		}, {
			Config: acctest.Provider(l, "disks") + all,
			Check: resource.ComposeTestCheckFunc(has(4, 3, 7), func(*terraform.State) error { // two configurations and a layer
				hasFiles(t, file(l, "second"), "app", "base", "python")
				hasFiles(t, file(l, "third"), "base", "other", "python")
				return nil
			}),
		}, {
			Config: acctest.Provider(l, "disks") + all, PlanOnly: true,
		}, {
			Config: acctest.Provider(l, "disks") + all + vm(l, acctest.NewConsole(t), "", "force_stop = true", on("root", theDisk, ""), on("vol", "virtclaim_disk.third", "")),
			Check: func(*terraform.State) error {
				acctest.Contains(t, virsh(t, l, "domblklist", "web"), file(l, "root"))
				return nil
			},
		}, {
			Config: acctest.Provider(l, "disks") + first, Check: has(3, 1, 7),
		}, {
			Config:             acctest.Provider(l, "disks") + disk("root", rootFilesystem(two.Reference)),
			ConfigPlanChecks:   resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(theDisk, plancheck.ResourceActionReplace)}},
			Check:              has(3, 1, 12), // nothing was left of the former ones; the plan of a replacement reads the configuration
			ExpectNonEmptyPlan: false,
		}},
		CheckDestroy: func(*terraform.State) error {
			if b, d := inPool(t, l); len(b)+len(d) > 0 || strings.Contains(virsh(t, l, "secret-list"), "virtclaim base") {
				return fmt.Errorf("left are %v, %v", b, d)
			}
			return nil
		},
	})
}

// An imported disk finds the layers below it in its header, and the configuration of its image in the registry when it is adopted.
func TestAccDisk_RootFilesystemImported(t *testing.T) {
	l := acctest.Lab(t)
	_, image := pushedLayers(t, l, "imported", "base", "app")
	config := acctest.Provider(l, "disks") + disk("root", rootFilesystem(image.Reference))
	const id = "host-a/ssd/root"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config},
			{
				Config: config, ResourceName: theDisk, ImportState: true, ImportStateId: id, ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{
					"source", "digest", "image_configuration", "usage_type", "timeouts", "name_prefix", "size",
				},
			},
		},
	})
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("state", "rm", theDisk)
	cli.Must("import", "-no-color", theDisk, id)
	cli.Write("program.tf", "output \"program\" {\n  value = virtclaim_disk.root.image_configuration.entrypoint[0]\n}\n")
	out := cli.Must("apply", "-auto-approve", "-no-color")
	if !strings.Contains(out, "0 added, 1 changed, 0 destroyed") || !strings.Contains(out, `program = "/bin/imported"`) {
		t.Errorf("the disk was not just adopted:\n%s", out)
	}
	if plan := cli.Must("plan", "-no-color"); !strings.Contains(plan, "No changes.") {
		t.Errorf("the plan after that is not empty:\n%s", plan)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// What can't be a root file system is refused, and leaves nothing.
func TestAccDisk_RootFilesystemRefused(t *testing.T) {
	l := acctest.Lab(t)
	registry := acctest.Must(l.Registry(t.Context()))(t)
	hostile := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disks/root", Tag: "hostile", Layers: append(layersOf("base"), lab.ImageLayer{Whiteouts: []string{"."}}),
	}))(t)
	_, image := pushedLayers(t, l, "small", "base")
	for name, c := range map[string]struct{ disk, want string }{
		"hostile":   {disk("root", rootFilesystem(hostile.Reference)), "layer 2 of 2 of the container image " + hostile.Reference + ":"},
		"too small": {disk("root", "size = \"8Gi\"\n"+rootFilesystem(image.Reference)), "source.root_filesystem has 16Gi"},
		"raw":       {disk("root", "format = \"raw\"\n"+rootFilesystem(image.Reference)), "Overlays and clones are qcow2 images"},
		"not there": {disk("root", unpulled(image)), "has no disk of the container image " + image.ByDigest},
		"unpulled":  {disk("root", `source = { root_filesystem = { image = "a.example/b:1", pull_policy = "Never" } }`), "A tag needs the registry"},
	} {
		t.Run(name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: acctest.Factories(),
				Steps:                    []resource.TestStep{{Config: acctest.Provider(l, "disks") + c.disk, ExpectError: message(c.want)}},
			})
			if b, d := inPool(t, l); len(b)+len(d) > 0 {
				t.Errorf("left are %v, %v", b, d)
			}
		})
	}
}

// A disk of an image that another one of the pool has is made without the registry, and nothing is left of what was recorded for that.
func TestAccDisk_RootFilesystemUnpulled(t *testing.T) {
	l := acctest.Lab(t)
	registry, image := pushedLayers(t, l, "unpulled", "base", "app")
	_, other := pushedLayers(t, l, "over", "base", "app", "more")
	requests := func() (n int) {
		for _, kind := range []string{"manifests", "blobs"} {
			n += registry.Requests(http.MethodGet, kind) + registry.Requests(http.MethodHead, kind)
		}
		return n
	}
	first := acctest.Provider(l, "disks") + disk("first", rootFilesystem(image.Reference)) + disk("other", rootFilesystem(other.Reference))
	third := disk("third", unpulled(image))
	entrypoint := func(name, program string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("virtclaim_disk."+name, tfjsonpath.New("image_configuration").AtMapKey("entrypoint"),
			knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact(program)}))
	}
	had := 0
	asked := func(*terraform.State) error {
		if n := requests(); n != had {
			return fmt.Errorf("the registry was asked %d times", n-had)
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{Config: first}, {
			PreConfig: func() { had = requests() },
			Config:    first + disk("second", unpulled(image)) + third, ConfigStateChecks: []statecheck.StateCheck{
				entrypoint("second", "/bin/unpulled"), known("second", "digest", image.Digest), known("third", "digest", image.Digest),
			},
			Check: resource.ComposeTestCheckFunc(asked, func(*terraform.State) error {
				hasFiles(t, file(l, "second"), "app", "base")
				return nil
			}),
		}, {
			Config: first + third, Check: asked,
		}, {
			Config:            acctest.Provider(l, "disks") + disk("other", rootFilesystem(other.Reference)) + strings.Replace(third, "third", "fourth", 2),
			ConfigStateChecks: []statecheck.StateCheck{entrypoint("other", "/bin/over"), entrypoint("fourth", "/bin/unpulled")}, Check: asked,
		}},
		CheckDestroy: func(*terraform.State) error {
			if b, d := inPool(t, l); len(b)+len(d) > 0 || strings.Contains(virsh(t, l, "secret-list"), "virtclaim") {
				return fmt.Errorf("left are %v, %v: %s", b, d, virsh(t, l, "secret-list"))
			}
			return nil
		},
	})
}

// Layers with what AUFS and macOS have put into them become disks without it, and the log says so once for an image.
func TestAccDisk_RootFilesystemSkips(t *testing.T) {
	l := acctest.Lab(t)
	registry := acctest.Must(l.Registry(t.Context()))(t)
	layer := filepath.Join(t.TempDir(), "layer.tar")
	out := acctest.Must(os.Create(layer))(t)
	w := tar.NewWriter(out)
	for _, h := range []tar.Header{
		{Name: ".wh..wh.aufs"},
		{Name: ".wh..wh.plnk/", Typeflag: tar.TypeDir},
		{Name: ".wh..wh.plnk/1.2"},
		{Name: "etc/mac", Size: 3, PAXRecords: map[string]string{"SCHILY.xattr.com.apple.provenance": "p", "LIBARCHIVE.xattr.com.apple.provenance": "cA"}},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_ = acctest.Must(w.Write([]byte("mac")[:h.Size]))(t)
	}
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	image := acctest.Must(registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disks/root", Tag: "old", Layers: append(layersOf("base"), lab.ImageLayer{Archive: layer}, layersOf("top")[0]),
	}))(t)
	cli := acctest.NewCLI(t).With("TF_LOG_PROVIDER=INFO")
	cli.Write("main.tf", acctest.Provider(l, "disks")+disk("root", rootFilesystem(image.Reference)))
	log := cli.Must("apply", "-auto-approve", "-no-color")
	hasFiles(t, file(l, "root"), "base", "mac", "top")
	if said := regexp.MustCompile("The layers have files of AUFS.*entries=5").FindAllString(log, -1); len(said) != 1 {
		t.Errorf("the log says %q:\n%s", said, log)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// After an interruption at any change, the next apply makes the layers that are not there, and in the end nothing is left.
func TestAccDisk_RootFilesystemInterrupted(t *testing.T) {
	l := acctest.Lab(t)
	_, image := pushedLayers(t, l, "interrupted", "base", "app")
	config := disk("root", rootFilesystem(image.Reference))
	whole := func(t *testing.T) { t.Helper(); hasFiles(t, file(l, "root"), "app", "base") }
	for _, s := range []uploadScenario{
		{scenario{
			// The host's mutex twice; the journals of the disk, which is started, and of two layers; an upload of a body and of a head for each.
			"create", "", config,
			map[lab.Call]int{
				lab.CallCreateXML: 2, lab.CallDefine: 3, lab.CallDomainCreateFlags: 1, lab.CallVolumeCreate: 3, lab.CallVolumeUpload: 4,
				lab.CallUndefine: 2, lab.CallDestroy: 2, lab.CallSecretDefine: 3, // after the last ones the disk is made
			},
			whole, "",
		}, false, []int64{1, 512 << 10}},
		{scenario{
			"destroy", config, "\n",
			map[lab.Call]int{lab.CallCreateXML: 1, lab.CallVolumeDelete: 3, lab.CallSecretUndefine: 3, lab.CallDestroy: 1},
			nil, config, // the shared images may stay until the next disk of their pool is destroyed
		}, false, nil},
	} {
		for _, f := range s.faults() {
			t.Run(s.name+"/"+f.String(), func(t *testing.T) {
				interrupt(t, s.scenario, f)
				if b, d := inPool(t, l); len(b)+len(d) > 0 {
					t.Errorf("left are %v, %v", b, d)
				}
			})
		}
	}
}
