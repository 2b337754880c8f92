//go:build acc

package disk_test

import (
	"context"
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

const (
	both   = `hosts = ["host-a", "host-b"]`
	onlyA  = `hosts = ["host-a"]`
	onlyB  = `hosts = ["host-b"]`
	twoMiB = 2 << 20
)

// sharing adds a pool that host-a and host-b share, of the usage type shared, and returns its folder.
func sharing(t *testing.T, l *lab.Lab) (folder string, provider func(owner string) string) {
	t.Helper()
	folder, remove, err := l.AddSharedPool(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, remove)
	return folder, func(owner string) string {
		of := func(host string) string { return fmt.Sprintf(`shared = "shared-%s", slow =`, host) }
		return strings.Replace(strings.Replace(acctest.Provider(l, owner), `slow =`, of("host-a"), 1), `"ssd", slow =`, `"ssd", `+of("host-b"), 1)
	}
}

// shared is a disk in the shared pool, managed by that host.
func shared(host, name, more string) string {
	return strings.ReplaceAll(strings.ReplaceAll(disk(name, more), `"fast"`, `"shared"`), "host-a\"\n  name", host+"\"\n  name")
}

// onB is a machine's configuration for host-b.
func onB(machine string) string { return strings.ReplaceAll(machine, `"host-a"`, `"host-b"`) }

func virshOnB(t *testing.T, l *lab.Lab, args ...string) string {
	t.Helper()
	out, err := l.Hosts["host-b"].Virsh(context.Background(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refuses runs a command that must fail with these parts in its output.
func refuses(t *testing.T, cli acctest.CLI, args []string, parts ...string) {
	t.Helper()
	if out, err := cli.Run(args...); err == nil || !message(parts...).MatchString(out) {
		t.Errorf("%v: want %q, got %v:\n%s", args, parts, err, out)
	}
}

var (
	apply   = []string{"apply", "-auto-approve", "-no-color"}
	destroy = []string{"destroy", "-auto-approve", "-no-color"}
)

// A disk of two hosts is made, given to a machine on the other one, grown there, and managed by it, while its machine runs on.
func TestAccDisk_HostsOfSharedFolder(t *testing.T) {
	l := acctest.Lab(t)
	_, provider := sharing(t, l)
	console := acctest.NewConsole(t)
	web := onB(vm(l, console, "", "", on("root", theDisk, "")))
	isUpdated := pre(planned(theDisk, plancheck.ResourceActionUpdate), planned(theMachine, plancheck.ResourceActionNoop))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{{
			Config: provider("disks") + shared("host-a", "root", `size = "1Mi"`+"\n"+onlyA),
			Check:  resource.TestCheckResourceAttr(theDisk, "volume.images.0.hosts.#", "1"),
		}, {
			Config:           provider("disks") + shared("host-a", "root", `size = "1Mi"`+"\n"+both),
			ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionUpdate)),
			Check:            resource.TestCheckResourceAttr(theDisk, "volume.images.0.hosts.1", "host-b"),
		}, {
			Config: provider("disks") + shared("host-a", "root", `size = "1Mi"`+"\n"+both) + web,
			Check:  boots(t, console, 1),
		}, {
			Config: provider("disks") + shared("host-a", "root", `size = "2Mi"`+"\n"+both) + web,
			Check: func(*terraform.State) error {
				if out := virshOnB(t, l, "domblkinfo", "web", "vda"); !strings.Contains(out, fmt.Sprint(twoMiB)) {
					return fmt.Errorf("the running guest's disk has another size: %s", out)
				}
				return nil
			},
		}, {
			Config:           provider("disks") + shared("host-b", "root", `size = "2Mi"`+"\n"+both) + web,
			ConfigPlanChecks: isUpdated,
			Check:            resource.TestCheckResourceAttr(theDisk, "id", "host-b/shared-host-b/root"),
		}, {
			ResourceName: theDisk, ImportState: true, ImportStateId: "host-b/shared-host-b/root", ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"hosts", "size", "usage_type", "volume"},
		}, {
			Config: provider("disks") + shared("host-b", "root", `size = "2Mi"`+"\n"+onlyB) + web,
			Check:  boots(t, console, 1),
		}, {
			Config: provider("disks") + shared("host-b", "root", `size = "2Mi"`+"\n"+both),
		}, {
			Config:           provider("disks") + shared("host-a", "root", `size = "3Mi"`+"\n"+both),
			ConfigPlanChecks: pre(planned(theDisk, plancheck.ResourceActionUpdate)),
			Check:            resource.TestCheckResourceAttr(theDisk, "volume.capacity", fmt.Sprint(3<<20)),
		}},
	})
}

// Another configuration, which manages the same disk by host-a, changes nothing while a machine on host-b has it.
func TestAccDisk_HostsOfSharedFolderAreGuarded(t *testing.T) {
	l := acctest.Lab(t)
	folder, provider := sharing(t, l)
	ours, theirs := acctest.NewCLI(t), acctest.NewCLI(t)
	ours.Write("main.tf", provider("ours")+shared("host-a", "root", `size = "1Mi"`+"\n"+both)+
		onB(bare("", on("root", theDisk, ""))))
	ours.Must(apply...)

	theirs.Write("main.tf", provider("theirs")+shared("host-a", "root", `size = "1Mi"`+"\n"+both))
	theirs.Must("import", theDisk, "host-a/shared-host-a/root")
	theirs.Must(apply...)
	theirs.Write("machine.tf", strings.ReplaceAll(bare("", on("root", theDisk, "")), `"web"`, `"other"`))
	refuses(t, theirs, apply, "it is in use", "domain web on host host-b runs with it")
	theirs.Must("destroy", "-auto-approve", "-target=virtclaim_virtual_machine.other")
	if err := os.Remove(filepath.Join(theirs.Dir, "machine.tf")); err != nil {
		t.Fatal(err)
	}
	refuses(t, theirs, destroy, "it is in use", "web", "host-b", "not this configuration's")
	theirs.Replace("main.tf", both, onlyA)
	refuses(t, theirs, apply, "it is in use: domain web on host host-b has it")
	theirs.Replace("main.tf", onlyA, both)
	theirs.Write("over.tf", shared("host-a", "over", over("copy-on-write", theDisk)+"\n"+both))
	refuses(t, theirs, apply, "it is in use", "domain web on host host-b runs and writes to the master")
	theirs.Replace("over.tf", "copy-on-write", "clone")
	refuses(t, theirs, apply, "it is in use", "domain web on host host-b runs and writes to the master")
	if got := names(t, folder); got != "root" {
		t.Errorf("the folder has %s", got)
	}
	theirs.Must("state", "rm", theDisk)
	virshOnB(t, l, "suspend", "web")
	ours.Must(destroy...)
	if got := names(t, folder); got != "" {
		t.Errorf("the folder has %s", got)
	}
	// host-b does not take the deleted file for an overlay.
	ours.Write("main.tf", provider("ours")+onB(disk("root", `size = "1Mi"`)+bare("", on("root", theDisk, ""))))
	ours.Must(apply...)
	virshOnB(t, l, "suspend", "web")
	ours.Must(destroy...)
}

// names are the files of a folder.
func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// Hosts that do not see the file are refused, and nothing is left.
func TestAccDisk_HostsWithFoldersOfTheirOwn(t *testing.T) {
	l := acctest.Lab(t)
	folder, provider := sharing(t, l)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", provider("disks")+disk("root", `size = "1Mi"`+"\n"+both))
	refuses(t, cli, []string{"plan", "-no-color"}, "Not a disk of all these hosts", "the folder is not shared")

	uncover, err := l.Hosts["host-b"].CoverFolder(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	acctest.Undo(t, uncover)
	cli.Write("main.tf", provider("disks")+shared("host-a", "root", `size = "1Mi"`+"\n"+both))
	refuses(t, cli, apply, "the folder is not shared", "is not in storage pool shared-host-b of host host-b")
	if got, state := names(t, folder), cli.Must("state", "list"); got+state != "" {
		t.Errorf("left are %q, %q", got, state)
	}
	if out := virsh(t, l, "list", "--all", "--name"); strings.TrimSpace(out) != "" {
		t.Errorf("left are %s", out)
	}

	cli.Replace("main.tf", both, onlyA)
	cli.Must(apply...)
	cli.Replace("main.tf", onlyA, both)
	refuses(t, cli, apply, "the folder is not shared", "is not in storage pool shared-host-b of host host-b")
	if out := cli.Must("state", "show", "-no-color", theDisk); strings.Contains(out, "host-b") {
		t.Errorf("the state has host-b: %s", out)
	}
	cli.Must(destroy...)
}

// An overlay of a claim that is bound for both hosts is used on both, one after the other.
func TestAccDisk_HostsOfOverlay(t *testing.T) {
	l := acctest.Lab(t)
	_, provider := sharing(t, l)
	_, config := golden(t, l, "golden")
	cli := acctest.NewCLI(t)
	layer := shared("host-a", "root", over("copy-on-write", "virtclaim_volume_binding.golden")+"\n"+both)
	top := shared("host-a", "top", over("copy-on-write", theDisk)+"\n"+both)
	machine := bare("", on("top", "virtclaim_disk.top", ""))
	cli.Write("main.tf", provider("disks")+config+layer+top+onB(machine))
	cli.Must(apply...)
	virshOnB(t, l, "suspend", "web")
	cli.Must("destroy", "-auto-approve", "-target="+theMachine)
	cli.Write("main.tf", provider("disks")+config+layer+top+machine)
	cli.Must(apply...)
	virsh(t, l, "suspend", "web")
	cli.Write("main.tf", provider("disks")+config+layer+top)
	cli.Must(apply...)

	// An overlay that host-b does not see would not keep its machines from writing to the master.
	cli.Write("main.tf", provider("disks")+config+layer+strings.Replace(top, both, onlyA, 1))
	refuses(t, cli, []string{"plan", "-no-color"}, "Another host would not see the overlay")
	cli.Write("main.tf", provider("disks")+config+layer+top)
	cli.Must(destroy...)
}
