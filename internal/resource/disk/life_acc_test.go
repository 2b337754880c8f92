//go:build acc

package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccDisk_CloneIsIndependent(t *testing.T) {
	l := acctest.Lab(t)
	lun, source := golden(t, l, "the master's content")
	untouched(t, lun.Path)
	console := acctest.NewConsole(t)
	disks := source + disk("root", over("clone", "virtclaim_volume_binding.golden")+"\n size = \"96Mi\"")
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: acctest.Provider(l, "disks") + disks},
			{
				PreConfig: func() {
					if err := l.Target.Stop(t.Context()); err != nil {
						t.Fatal(err)
					}
				},
				Config: acctest.Provider(l, "disks") + disks + vm(l, console, "", "", on("root", theDisk, "")),
				Check: func(*terraform.State) error {
					acctest.Contains(t, console.Await(t, "DISK vda "), "bytes=100663296", "first=the master's content")
					return l.Target.Start(context.Background())
				},
			},
		},
	})
}

func TestAccDisk_EphemeralIsReset(t *testing.T) {
	l := acctest.Lab(t)
	lun, source := golden(t, l, "the master's content")
	untouched(t, lun.Path)
	console := acctest.NewConsole(t)
	config := func(running, size string) string {
		return acctest.Provider(l, "disks") + source +
			disk("root", over("copy-on-write", "virtclaim_volume_binding.golden")+fmt.Sprintf("\n  size = %q", size)) +
			vm(l, console, run("show() { echo $1=$(dd if=/dev/vda bs=1M skip=1 count=1 | head -c 14); }; show before; "+writeAt1M+"; show after"),
				"running = "+running, on("root", theDisk, ", ephemeral = true"))
	}
	left := file(l, "root") + ".TRANSIENT-web"
	leave := func() { // as libvirtd and QEMU do when they die together
		out, err := exec.CommandContext(t.Context(), "qemu-img", "create", "-f", "qcow2", "-F", "qcow2", "-b", file(l, "root"), left).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config("true", "64Mi"), Check: boots(t, console, 1)},
			{Config: config("true", "96Mi"), ExpectError: message("domain web runs on an overlay of it")},
			{Config: config("false", "64Mi")},
			{Config: config("false", "96Mi")},
			{
				PreConfig: leave,
				Config:    config("true", "96Mi"),
				Check: func(*terraform.State) error {
					for n := 1; n <= 2; n++ {
						acctest.Contains(t, console.AwaitN(t, "after=", n), "after=from-the-guest")
						if before := console.AwaitN(t, "before=", n); strings.Contains(before, "guest") {
							t.Errorf("boot %d found what an earlier one wrote: %s", n, before)
						}
					}
					return nil
				},
			},
			{Config: config("false", "96Mi")},
			{
				PreConfig: leave, Config: acctest.Provider(l, "disks") + source,
				Check: func(*terraform.State) error { return gone(left)(nil) },
			},
		},
	})
}

func TestAccDisk_Chains(t *testing.T) {
	l := acctest.Lab(t)
	lun, source := golden(t, l, "the master's content")
	untouched(t, lun.Path)
	console := acctest.NewConsole(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "disks") + source +
				disk("a-clone", over("clone", "virtclaim_volume_binding.golden")) +
				disk("over-clone", over("copy-on-write", "virtclaim_disk.a-clone")) +
				disk("over-master", over("copy-on-write", "virtclaim_volume_binding.golden")) +
				disk("over-over", over("copy-on-read", "virtclaim_disk.over-master")+"\n size = \"80Mi\"") +
				disk("clone-of-over", over("clone", "virtclaim_disk.over-master")) +
				disk("raw", "size = \"1Mi\"\n format = \"raw\"\n preallocation = \"falloc\"") +
				vm(l, console, "virtclaim.disks=4", "", on("a", "virtclaim_disk.over-clone", ""), on("b", "virtclaim_disk.over-over", ""),
					on("c", "virtclaim_disk.clone-of-over", ""), on("d", "virtclaim_disk.raw", "")),
			Check: resource.ComposeTestCheckFunc(
				resource.TestCheckResourceAttr("virtclaim_disk.over-clone", "volume.images.#", "2"),
				resource.TestCheckResourceAttr("virtclaim_disk.over-over", "volume.images.#", "3"),
				resource.TestCheckResourceAttr("virtclaim_disk.clone-of-over", "volume.images.#", "1"),
				func(*terraform.State) error {
					for target, bytes := range map[string]int{"vda": 64 << 20, "vdb": 80 << 20, "vdc": 64 << 20} {
						acctest.Contains(t, console.Await(t, "DISK "+target), fmt.Sprintf("bytes=%d", bytes), "first=the master's content")
					}
					acctest.Contains(t, console.Await(t, "DISK vdd"), "bytes=1048576")
					return nil
				}),
		}},
	})
}

func TestAccDisk_GeneratedNamesCreateBeforeDestroy(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	prefixed := strings.Replace(disk("data", blank+"\n lifecycle { create_before_destroy = true }"), "name       =", "name_prefix =", 1)
	config := acctest.Provider(l, "disks") + disk("root", blank) + prefixed +
		vm(l, console, "", "", on("root", theDisk, ""), on("vol", "virtclaim_disk.data", ""))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config, Check: boots(t, console, 1)},
			{
				Taint: []string{"virtclaim_disk.data"}, Config: config,
				ConfigPlanChecks: pre(planned("virtclaim_disk.data", plancheck.ResourceActionCreateBeforeDestroy)),
				Check: resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda", "vdb"), func(*terraform.State) error {
					left, err := filepath.Glob(file(l, "data*"))
					if err != nil || len(left) != 1 || !strings.Contains(strings.Join(openFiles(t, l), "\n"), left[0]) {
						return fmt.Errorf("on the host is %v, open are %v: %w", left, openFiles(t, l), err)
					}
					return nil
				}),
			},
		},
	})
}

func TestAccDisk_ForeignVolumeStays(t *testing.T) {
	l := acctest.Lab(t)
	foreign := file(l, "root")
	if err := os.WriteFile(foreign, []byte("precious"), 0o600); err != nil { // libvirt has not seen it yet
		t.Fatal(err)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config:      acctest.Provider(l, "disks") + disk("root", blank),
			ExpectError: message("the volume root is in the storage pool ssd already", "left alone", "terraform import"),
		}},
	})
	if got := read(t, foreign); got != "precious" {
		t.Errorf("the foreign file has become %q", got)
	}
	virsh(t, l, "vol-delete", "root", "--pool", "ssd")
}

// The first of several instances is removed: each of the others takes the name that the next one frees in the same apply.
func TestAccDisk_CountFromTheFront(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	config := func(names string) string {
		return acctest.Provider(l, "disks") + "locals {\n names = [" + names + "]\n}\n" +
			strings.Replace(disk("each", blank+"\n  count = length(local.names)"), `= "each"`, "= local.names[count.index]", 1)
	}
	cli.Write("main.tf", config(`"one", "two", "three"`))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", config(`"two", "three"`))
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "2 added, 0 changed, 3 destroyed")
	if out := cli.Must("plan", "-no-color"); !strings.Contains(out, "No changes") {
		t.Errorf("the next plan:\n%s", out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

func TestAccDisk_NothingIsAdoptedWithoutState(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	config := strings.Replace(acctest.Provider(l, "disks"), "owner ", "# owner ", 1) + disk("root", blank)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve")
	if err := os.Remove(filepath.Join(cli.Dir, "terraform.tfstate")); err != nil { // as if the apply had been killed at its end
		t.Fatal(err)
	}
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil ||
		!message("is in the storage pool ssd already", "left alone", "terraform import", "ssd/root").MatchString(out) {
		t.Errorf("got %v:\n%s", err, out)
	}
	cli.Must("import", "virtclaim_disk.root", "host-a/ssd/root")
	cli.Must("apply", "-auto-approve")
	cli.Must("destroy", "-auto-approve")
}

// A usage type that only an annotation of the host's node has is a folder: an existing pool, or a new one.
func TestAccDisk_UsageTypesOfNode(t *testing.T) {
	l := acctest.Lab(t)
	ssd, own := filepath.Join(l.Hosts["host-a"].Dir, "pools", "ssd"), filepath.Join(l.Hosts["host-a"].Dir, "pools", "new")
	node(t, l, "node-a", map[string]string{
		"kubevirt.io/storage.usage-type.fast": ssd + "/", "kubevirt.io/storage.usage-type.new": own,
	})
	t.Cleanup(func() { // virtclaim does not remove pools that it created
		virsh(t, l, "pool-destroy", "virtclaim-new")
		virsh(t, l, "pool-undefine", "virtclaim-new")
	})
	provider := strings.Replace(acctest.Provider(l, "disks"), `, storage = { fast = "ssd", slow = "rust" }`, `, kubernetes_node = "node-a"`, 1)
	on := func(usageType, name string) string {
		return strings.Replace(disk(name, blank), `usage_type = "fast"`, fmt.Sprintf("usage_type = %q", usageType), 1)
	}
	disks := on("fast", "fast") + on("new", "new") + on("new", "newer") // two disks need the new pool at the same time
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{
				Config: provider + disks,
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr("virtclaim_disk.fast", "pool", "ssd"),
					resource.TestCheckResourceAttr("virtclaim_disk.new", "pool", "virtclaim-new")),
			},
			{
				Config: provider + disks + on("slow", "slow"), PlanOnly: true,
				ExpectError: message(`host host-a has no usage type "slow"; it has fast, new, in the annotations`),
			},
		},
	})
}

func node(t *testing.T, l *lab.Lab, name string, annotations map[string]string) {
	t.Helper()
	nodes := l.Cluster.Client.CoreV1().Nodes()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	if _, err := nodes.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestAccDisk_CloneNeedsRoom(t *testing.T) {
	l := acctest.Lab(t)
	lun, err := l.Target.AddLUN(t.Context(), lab.LUNSpec{Size: 8 << 40}) // sparse
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Target.RemoveLUN(context.Background(), lun); err != nil {
			t.Error(err)
		}
	})
	acctest.Claim(t, l, "disks", "golden", lun)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: acctest.Provider(l, "disks") + binding("golden", "read-shared", "host-a") +
				disk("root", over("clone", "virtclaim_volume_binding.golden")),
			ExpectError: message("the storage pool ssd has", "bytes left, and the volume root may need 8796093022208"),
		}},
	})
}

// A PersistentVolume may have another capacity than its storage, and a file may have grown since it was bound: copies are as large as the storage.
func TestAccDisk_CopyIsComplete(t *testing.T) {
	l := acctest.Lab(t)
	acctest.AddClaim(t, l, lab.ClaimSpec{Namespace: "disks", Name: "golden", LUN: acctest.LUN(t, l, false, "the master"), Size: 48 << 20})
	image := filepath.Join(t.TempDir(), "disk.img")
	grow := func(bytes int64) {
		if err := errors.Join(os.WriteFile(image, nil, 0o644), os.Truncate(image, bytes)); err != nil {
			t.Fatal(err)
		}
	}
	grow(1 << 20)
	cli := acctest.NewCLI(t)
	masters := acctest.Provider(l, "disks") + binding("golden", "read-shared", "host-a") + goldenFile(image)
	cli.Write("main.tf", masters)
	cli.Must("apply", "-auto-approve", "-no-color")
	grow(2 << 20)
	cli.Write("main.tf", masters+disk("small", over("clone", "virtclaim_volume_binding.golden")+"\n size = \"50Mi\""))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil || !message("its size is 52428800 bytes, and its master", "has 67108864").MatchString(out) {
		t.Errorf("%v:\n%s", err, out)
	}
	cli.Write("main.tf", masters+disk("over", over("copy-on-write", "virtclaim_volume_binding.golden"))+
		disk("clone", over("clone", "virtclaim_volume_binding.golden"))+disk("file", over("copy-on-write", "virtclaim_volume_binding.data")))
	out = cli.Must("apply", "-auto-approve", "-no-color")
	if !message("has 67108864 bytes on host host-a, and its binding or PersistentVolume says 50331648").MatchString(out) {
		t.Errorf("it does not warn:\n%s", out)
	}
	for name, want := range map[string]string{"over": "67108864", "clone": "67108864", "file": "2097152"} {
		acctest.Contains(t, cli.Must("state", "show", "-no-color", "virtclaim_disk."+name), "capacity     = "+want)
		acctest.Contains(t, virsh(t, l, "vol-info", "--bytes", name, "ssd"), want)
	}
	if out := cli.Must("plan", "-no-color"); !strings.Contains(out, "No changes") {
		t.Errorf("the next plan:\n%s", out)
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
}

func TestAccDisk_CloneRefusedWhileWritten(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "disks", "data", acctest.LUN(t, l, false, "data"))
	base := acctest.Provider(l, "disks") + binding("data", "write-exclusive", "host-a") + bare("", on("root", "virtclaim_volume_binding.data", ""))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: base},
			{
				Config:      base + disk("copy", over("clone", "virtclaim_volume_binding.data")),
				ExpectError: message("domain web on host host-a runs and writes to the master"),
			},
			destroyBare(t, l, base),
		},
	})
}

func TestAccDisk_GuestRefusesUnplug(t *testing.T) {
	l := acctest.Lab(t)
	console := acctest.NewConsole(t)
	data := disk("data", blank)
	config := func(disks string, on ...string) string {
		return acctest.Provider(l, "disks") + disks + vm(l, console, "", "", on...)
	}
	root := disk("root", blank)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: config(root+data, on("root", theDisk, ""), on("vol", "virtclaim_disk.data", "")), Check: boots(t, console, 1)},
			{
				PreConfig:   func() { virsh(t, l, "suspend", "web") },
				Config:      config(root, on("root", theDisk, "")),
				ExpectError: message("The disk could not be removed", "did not acknowledge the unplug: it is paused", "allow_restart = true"),
			},
			{
				PreConfig: func() {
					if _, err := os.Stat(file(l, "data")); err != nil {
						t.Error("the disk is gone, but the guest had it:", err)
					}
					virsh(t, l, "resume", "web")
				},
				Config: config(root, on("root", theDisk, "")),
				Check:  resource.ComposeTestCheckFunc(boots(t, console, 1), has(t, l, "vda"), gone(file(l, "data"))),
			},
		},
	})
}
