//go:build acc

package virtualmachine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A machine without an operating system ignores its power button and each unplug: an apply reports what it waits for and the remedy, keeps
// the attributes of the remedy although it fails, and the next one restarts the machine without the disk.
func TestAccVirtualMachine_UnresponsiveGuest(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t, "TF_LOG=INFO", "TF_LOG_PATH=info.log")
	cli.Write("provider.tf", acctest.Provider(l, "deaf")+`
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "fast"
  size       = "1Mi"
}
`)
	config := func(disks, more string) {
		cli.Write("main.tf", fmt.Sprintf(`
resource "virtclaim_virtual_machine" "web" {
  name    = "web"
  host    = "host-a"
  memory  = "64Mi"
  machine = { type = "pc", domain_type = "qemu" }
  disks   = { %s }
  %s
}
`, disks, more))
	}
	const data = "data = { volume = virtclaim_disk.data.volume, boot_order = null }, other = { device = \"cdrom\", boot_order = 1 }"
	const none = "other = { device = \"cdrom\", boot_order = 1 }"
	config(data, `timeouts = { delete = "1m" }`)
	cli.Must("apply", "-auto-approve", "-no-color")
	config(none, `timeouts = { update = "8s", delete = "2m" }`+"\n force_stop = true")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("the firmware has acknowledged an unplug")
	}
	acctest.Contains(t, joined(out), "did not acknowledge the unplug", "allow_restart = true", "force_stop = true")
	acctest.Contains(t, cli.Must("state", "show", "-no-color", "virtclaim_virtual_machine.web"), "force_stop    = true", `delete = "2m"`)
	// A fifth of the time is for the unplug; then the machine is suspended, so that it is forced off at once.
	config(none, `timeouts = { update = "30s", delete = "2m" }`+"\n force_stop = true\n allow_restart = true")
	apply, output := cli.Start("apply", "-auto-approve", "-no-color")
	log := func() string { return string(acctest.Must(os.ReadFile(filepath.Join(cli.Dir, "info.log")))(t)) }
	acctest.Eventually(t, "the shutdown is waited for", func() error {
		if !strings.Contains(log(), "Waiting for the guest to shut down") {
			return errors.New(output())
		}
		return nil
	})
	suspended(t, l.Hosts["host-a"])
	if err := apply.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, output())
	}
	acctest.Contains(t, cli.Must("plan", "-no-color"), "No changes")
	suspended(t, l.Hosts["host-a"])
	cli.Must("destroy", "-auto-approve", "-no-color")
	for _, what := range []string{"Waiting for the guest to acknowledge the unplug", "Waiting for the guest to shut down"} {
		if !strings.Contains(log(), what) {
			t.Errorf("nobody said: %s", what)
		}
	}
}
