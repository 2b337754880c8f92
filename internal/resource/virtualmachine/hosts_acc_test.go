//go:build acc

package virtualmachine_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The two recipes of the guide on day-two operations: a host under another name, whose guest keeps running, and one that is off for good.
func TestAccVirtualMachine_HostRenamedOrGone(t *testing.T) {
	l := acctest.Lab(t)
	acctest.Claim(t, l, "machines", "moved", acctest.LUN(t, l, false, "golden"))
	console := acctest.NewConsole(t)
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", acctest.Provider(l, "moved"))
	cli.Write("main.tf", claimBinding("machines", "moved", "read-shared", "host-a", "host-b")+
		strings.ReplaceAll(copyOf("moved", "root", "copy-on-write"), "host-b", "host-a")+
		machine{name: "web", log: console.Path(), disks: []string{"root = { volume = virtclaim_disk.root.volume }"}}.hcl(l))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "READY")

	cli.Replace("provider.tf", "host-a = {", "node-a = {")
	cli.Replace("main.tf", `"host-a"`, `"node-a"`)
	out, err := cli.Run("plan", "-no-color")
	if err == nil {
		t.Error("a host that is not there was read")
	}
	acctest.Contains(t, joined(out), `Error: Unknown host`, `The disk host-a/ssd/root is on it, and the provider has no host "host-a"; its hosts are host-b, node-a`, "terraform state rm", "import it under the new name")
	cli.Must("state", "rm", "virtclaim_disk.root", "virtclaim_virtual_machine.web")
	cli.Write("imports.tf", `
import {
  to = virtclaim_disk.root
  id = "node-a/ssd/root"
}

import {
  to = virtclaim_virtual_machine.web
  id = "node-a/web"
}
`)
	acctest.Contains(t, plan(t, cli), "2 to import, 0 to add", "0 to destroy")
	cli.Must("apply", "-auto-approve", "-no-color")
	if out := plan(t, cli); !strings.Contains(out, "No changes.") || console.Boots() != 1 {
		t.Errorf("after %d boots: %s", console.Boots(), out)
	}

	cli.Must("state", "rm", "virtclaim_disk.root", "virtclaim_virtual_machine.web")
	cli.Write("imports.tf", "")
	cli.Replace("provider.tf", "node-a = {", "# node-a = {")
	cli.Write("main.tf", claimBinding("machines", "moved", "read-shared", "host-b"))
	gone := joined(cli.Must("apply", "-auto-approve", "-no-color"))
	acctest.Contains(t, gone, "A host is given up", "host node-a", "1 changed, 0 destroyed")
	acctest.Contains(t, plan(t, cli), "No changes.")

	cli.Write("provider.tf", acctest.Provider(l, "moved")) // it is back: what is on it is removed
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "web"))(t)
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "undefine", "web"))(t)
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "vol-delete", "root", "ssd"))(t)
	cli.Must("destroy", "-auto-approve", "-no-color")
}
