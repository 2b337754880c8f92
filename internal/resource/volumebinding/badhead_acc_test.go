//go:build acc

package volumebinding_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A pod, or a backup tool, changes the header of a qcow2 file that was bound. A running machine that would be restarted with it, or whose
// disk would be replaced by it, is neither shut down nor left without its disk.
func TestAccVolumeBinding_BadHeadIsSeenBeforeRestart(t *testing.T) {
	l := acctest.Lab(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	config := acctest.Provider(l, "heads") + strings.Replace(deaf, "disks      = { ", `allow_restart = true
  disks = {
    more = { volume = virtclaim_volume_binding.more.volume }
    `, 1)
	for _, name := range []string{"data", "more", "other"} {
		qcow2At(t, at(name))
		config += strings.ReplaceAll(binding(fmt.Sprintf(`file = { path = %q, format = "qcow2" }`, at(name)), `access_mode = "read-shared"`, "host-a"),
			`"data"`, fmt.Sprintf("%q", name))
	}
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", config)
	cli.Must("apply", "-auto-approve", "-no-color")
	qcow2At(t, at("more"), "-u", "-F", "raw", "-b", "/etc/passwd")
	qcow2At(t, at("other"), "-u", "-F", "raw", "-b", "/etc/passwd")

	const bad = " is opened as qcow2, but its header must not be: the image is refused"
	cli.Replace("main.tf", `"32Mi"`, `"48Mi"`)
	refuses(t, cli, at("more")+bad)
	cli.Replace("main.tf", `"48Mi"`, `"32Mi"`)
	cli.Replace("main.tf", "volume = virtclaim_volume_binding.more.", "volume = virtclaim_volume_binding.other.")
	refuses(t, cli, at("other")+bad)
	virsh := func(args ...string) string { return acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), args...))(t) }
	if state := virsh("domstate", "web"); !strings.Contains(state, "running") {
		t.Errorf("the machine is %s", state)
	}
	if disks := virsh("domblklist", "web"); !strings.Contains(disks, at("more")) {
		t.Errorf("the machine has only:\n%s", disks)
	}
	virsh("destroy", "web")
	cli.Must("destroy", "-auto-approve", "-no-color", "-target=virtclaim_virtual_machine.web")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
