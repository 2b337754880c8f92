//go:build acc

package virtualmachine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// What another provider has made is adopted with a configuration that Terraform generates for all of it: the guest goes on running.
func TestAccVirtualMachine_ImportsFromLibvirt(t *testing.T) {
	l := acctest.Lab(t)
	a := l.Hosts["host-a"]
	virsh := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(acctest.Must(a.Virsh(t.Context(), args...))(t))
	}
	formerly(t, a) // without its state
	console := acctest.NewConsole(t)
	definition := string(acctest.Must(os.ReadFile(filepath.Join(formerFolder, "booted.xml")))(t))
	if err := a.DefineXML(t.Context(), strings.NewReplacer(formerPool+"/vmlinux", l.Guest.Kernel, formerPool+"/initrd.gz", l.Guest.Initrd,
		"<serial type='pty'>", "<serial type='pty'><log file='"+console.Path()+"'/>").Replace(definition)); err != nil {
		t.Fatal(err)
	}
	virsh("start", "booted")
	console.Await(t, "READY")
	boots := console.Lines("BOOT ")
	if len(boots) != 1 {
		t.Fatalf("the guest has booted %d times", len(boots))
	}
	ids := virsh("domid", "booted") + " " + running(t, a)

	cli := acctest.NewCLI(t)
	blocks := ""
	for _, name := range []string{"web", "efi", "booted"} {
		blocks += fmt.Sprintf("import {\n  to = virtclaim_virtual_machine.%[1]s\n  id = \"host-a/%[1]s\"\n}\n", name)
	}
	for _, volume := range []string{"base.qcow2", "web.qcow2", "data.raw", "seed.iso"} {
		name, _, _ := strings.Cut(volume, ".")
		blocks += fmt.Sprintf("import {\n  to = virtclaim_disk.%s\n  id = \"host-a/ssd/%s\"\n}\n", name, volume)
	}
	cli.Write("main.tf", acctest.Provider(l, "adopted")+blocks)
	out := joined(cli.Must("plan", "-no-color", "-generate-config-out=generated.tf"))
	acctest.Contains(t, out, "7 to import, 0 to add, 0 to change, 0 to destroy")
	// The firmware's files, which the peer names, are libvirt's choice here.
	acctest.Contains(t, out, "Domain host-a/efi has what virtclaim_virtual_machine has no attributes for: os/loader, os/nvram.")
	if strings.Count(out, "no attributes for: ") != 1 {
		t.Errorf("something else has no attribute:\n%s", out)
	}
	acctest.Contains(t, cli.Must("apply", "-auto-approve", "-no-color"), "7 imported, 0 added, 0 changed, 0 destroyed")
	acctest.Contains(t, plan(t, cli), "No changes.")
	if now := virsh("domid", "booted") + " " + running(t, a); now != ids {
		t.Errorf("machines were started again: their ids were %s, and are %s", ids, now)
	}
	if now := console.Lines("BOOT "); !slices.Equal(now, boots) {
		t.Errorf("the guest has booted again: it said %q, and says %q", boots, now)
	}

	virsh("destroy", "web")                                                                    // nothing in it hears its power button
	cli.Must("destroy", "-auto-approve", "-no-color", "-target=virtclaim_virtual_machine.web") // before its disks
	cli.DestroyAll()
}
