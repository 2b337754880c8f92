//go:build acc

package volumebinding_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// idOf is the id of a folder's binding.
func idOf(t *testing.T, cli acctest.CLI) string {
	t.Helper()
	return uuid.FindString(cli.Must("state", "show", "-no-color", data))
}

// removeState removes a folder's state, and returns the id that its binding had.
func removeState(t *testing.T, cli acctest.CLI) (id string) {
	t.Helper()
	id = idOf(t, cli)
	for _, file := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		if err := os.Remove(filepath.Join(cli.Dir, file)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return id
}

// secretIs fails the test unless the host has exactly one secret, that of the binding.
func secretIs(t *testing.T, l *lab.Lab, host, id string) {
	t.Helper()
	out, err := l.Hosts[host].Virsh(t.Context(), "secret-list")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(out, "virtclaim-") != 1 || !strings.Contains(out, "virtclaim-"+id) {
		t.Errorf("%s has not the secret of %s alone:\n%s", host, id, out)
	}
}

// The binding of a lost state is imported, with its running machine, and continues unchanged.
func TestAccVolumeBinding_LostStateIsAdopted(t *testing.T) {
	for _, owner := range []string{"lost", ""} {
		t.Run("owner "+owner, func(t *testing.T) {
			l := acctest.Lab(t)
			lun := acctest.LUN(t, l, true, "")
			acctest.Claim(t, l, "lost", "data", lun)
			console := acctest.NewConsole(t)
			cli := configured(t, l, owner, binding(fromClaim("lost", "data"), "", "host-a")+web(l, console))
			cli.Must("apply", "-auto-approve")
			console.Await(t, "READY")
			id := removeState(t, cli)

			cli.Must("import", data, "lost/data/data")
			cli.Must("import", "virtclaim_virtual_machine.web", "host-a/web")
			cli.Must("apply", "-auto-approve")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			heldBy(t, l, "lost", "data", owner+"/data write-exclusive")
			secretIs(t, l, "host-a", id)
			plugged(t, l, lun)
			booted(t, console)
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "lost", "data")
		})
	}
}

// The binding of a lost state is released by the commands in the error of the next binding of its claim.
func TestAccVolumeBinding_LostStateIsReleased(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "lost", "data", acctest.LUN(t, l, true, ""))
	config := binding(fromClaim("lost", "data"), "", "host-a")
	cli := configured(t, l, "lost", config)
	cli.Must("apply", "-auto-approve")
	removeState(t, cli)
	next := configured(t, l, "next", config)
	out, err := next.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("what is somebody else's was taken")
	}
	for _, command := range append(printed(out, "kubectl"), printed(out, "virsh")...) {
		acctest.MustShell(t, l, strings.Replace(command, "virsh", "virsh -c '"+l.Hosts["host-a"].URI+"'", 1))
	}
	if err := secretsOn(l, map[string]int{"host-a": 0})(nil); err != nil {
		t.Error(err)
	}
	heldBy(t, l, "lost", "data")
	next.Must("apply", "-auto-approve")
	heldBy(t, l, "lost", "data", "next/data write-exclusive")
	next.Must("destroy", "-auto-approve")
}

// Applying again instead leads to two bindings of one name: the old one is removed together with the new one.
func TestAccVolumeBinding_LostStateAppliedAgain(t *testing.T) {
	l := acctest.Lab(t)
	lun := acctest.LUN(t, l, true, "")
	acctest.Claim(t, l, "lost", "data", lun)
	console := acctest.NewConsole(t)
	cli := configured(t, l, "lost", binding(fromClaim("lost", "data"), "", "host-a")+web(l, console))
	cli.Must("apply", "-auto-approve")
	console.Await(t, "READY")
	removeState(t, cli)
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Fatal("the machine was made twice")
	}
	says(t, out, "terraform import")
	cli.Must("import", "virtclaim_virtual_machine.web", "host-a/web")
	cli.Must("apply", "-auto-approve")
	plugged(t, l, lun)
	booted(t, console)
	cli.Must("destroy", "-auto-approve")
	heldBy(t, l, "lost", "data")
}

// A generated configuration has the hosts that have the binding's credentials or machines, and plans empty, also for a binding of which no
// host has anything.
func TestAccVolumeBinding_ImportGenerates(t *testing.T) {
	for _, c := range []struct {
		name          string
		chap, machine bool
		hosts         []string
	}{
		{"credentials", true, false, []string{"host-a", "host-b"}},
		{"machine", false, true, []string{"host-a"}},
		{"nothing", false, false, []string{"host-a", "host-b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := acctest.Lab(t)
			acctest.Claim(t, l, "lost", "data", acctest.LUN(t, l, c.chap, ""))
			config := binding(fromClaim("lost", "data"), "", c.hosts...)
			if c.machine {
				config += `
resource "virtclaim_virtual_machine" "web" {
  host    = "host-a"
  name    = "web"
  memory  = "32Mi"
  running = false
  machine = { type = "q35", domain_type = "qemu" }
  disks   = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`
			}
			cli := configured(t, l, "lost", config)
			cli.Must("apply", "-auto-approve")
			removeState(t, cli)
			blocks := "import {\n  to = " + data + "\n  id = \"lost/data/data\"\n}\n"
			if c.machine {
				blocks += "import {\n  to = virtclaim_virtual_machine.web\n  id = \"host-a/web\"\n}\n"
			}
			cli.Write("main.tf", acctest.Provider(l, "lost")+blocks)
			says(t, cli.Must("plan", "-no-color", "-generate-config-out=generated.tf"), "0 to add, 0 to change, 0 to destroy")
			cli.Must("apply", "-auto-approve")
			says(t, cli.Must("plan", "-no-color"), "No changes.")
			shown := strings.Join(strings.Fields(cli.Must("state", "show", "-no-color", data)), " ")
			says(t, shown, `hosts = [ "`+strings.Join(c.hosts, `", "`)+`", ]`)
			cli.Must("destroy", "-auto-approve")
			heldBy(t, l, "lost", "data")
		})
	}
}

// Hosts that the configuration no longer names lose the credentials all the same, and a destroy searches all
// hosts.
func TestAccVolumeBinding_ImportedLeavesNothing(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "lost", "data", acctest.LUN(t, l, true, ""))
	cli := configured(t, l, "lost", binding(fromClaim("lost", "data"), "", "host-a", "host-b"))
	cli.Must("apply", "-auto-approve")
	id := removeState(t, cli)
	cli.Replace("main.tf", `["host-a", "host-b"]`, `["host-a"]`)
	cli.Must("import", data, "lost/data/data")
	plan := cli.Must("plan", "-no-color")
	says(t, plan, "virtclaim_volume_binding.data will be updated in-place", "0 to add, 1 to change, 0 to destroy")
	cli.Must("apply", "-auto-approve")
	secretIs(t, l, "host-a", id)
	if err := secretsOn(l, map[string]int{"host-b": 0})(nil); err != nil {
		t.Error(err)
	}

	cli.Replace("main.tf", `["host-a"]`, `["host-a", "host-b"]`)
	cli.Must("apply", "-auto-approve")
	removeState(t, cli)
	cli.Must("import", data, "lost/data/data")
	cli.Must("destroy", "-auto-approve")
	if err := secretsOn(l, map[string]int{"host-a": 0, "host-b": 0})(nil); err != nil {
		t.Error(err)
	}
	heldBy(t, l, "lost", "data")
}

func TestAccVolumeBinding_ImportRefused(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "imports", "data", acctest.LUN(t, l, false, ""))
	acctest.Claim(t, l, "imports", "free", acctest.LUN(t, l, false, ""))
	shared := binding(fromClaim("imports", "data"), `access_mode = "read-shared"`, "host-a")
	one, two := configured(t, l, "one", shared), configured(t, l, "two", shared)
	one.Must("apply", "-auto-approve")
	two.Must("apply", "-auto-approve")
	direct := binding(`iscsi = { portal = "127.0.0.1", iqn = "iqn.2026-01.io.example:a", lun = 1 }`, "", "host-a")
	for _, c := range []struct {
		name, owner, config, id string
		want                    []string
	}{
		{"no path", "one", shared, "data", []string{"Invalid import id", "not of the shape <namespace>/<claim>/<name>"}},
		{"direct storage", "one", direct, "iscsi", []string{"Invalid import id", "named directly", "create it again"}},
		{"no claim", "one", shared, "imports/none/data", []string{"could not be imported", `"none" not found`}},
		{
			"another name", "one", shared, "imports/data/other",
			[]string{
				`imports/data is not reserved for a binding "other" of owner "one"`, `binding "data" of owner "one"`,
				"kubectl patch pvc data -n imports", "There is nothing to import: create the binding",
			},
		},
		{
			"another owner", "three", shared, "imports/data/data",
			[]string{`not reserved for a binding "data" of owner "three"`, `binding "data" of owner "one"`, "There is nothing to import"},
		},
		{
			"two of one name", "", shared, "imports/data/data",
			[]string{`reserved for more than one binding "data"`, `of owner "one"`, `of owner "two"`, "Set the provider's owner"},
		},
		{"a free claim", "one", shared, "imports/free/data", []string{"imports/free is not reserved", "It has no holder", "create the binding"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli := configured(t, l, c.owner, c.config)
			out, err := cli.Run("import", "-no-color", data, c.id)
			if err == nil || !isEmpty(t, cli) {
				t.Error("it was imported")
			}
			for _, want := range c.want {
				says(t, out, want)
			}
		})
	}
	one.Must("destroy", "-auto-approve")
	two.Must("destroy", "-auto-approve")
}

// The reserved mode is imported, and the configuration's is an update in place.
func TestAccVolumeBinding_ImportReadsMode(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "imports", "data", acctest.LUN(t, l, true, ""))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(),
		Steps: []resource.TestStep{
			{Config: acctest.Provider(l, "imports") + binding(fromClaim("imports", "data"), `access_mode = "read-shared"`, "host-a")},
			{
				ResourceName: data, ImportState: true, ImportStateId: "imports/data/data", ImportStateVerify: true,
			},
		},
	})
}
