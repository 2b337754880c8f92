//go:build acc

package volumebinding_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// A volume grows under its guest, which has the size after a restart, too. It is never asked to shrink, and one that can't grow stays.
func TestAccVolumeBinding_DynamicGrows(t *testing.T) {
	l := acctest.Lab(t)
	server := serveVolumes(t, l, "-max-size=256Mi")
	console := acctest.NewConsole(t)
	one := server.example(t)
	cli := configured(t, l, "grows", one+guestThatRuns(l, console, "until [ $(cat /sys/block/vda/size) = 262144 ]; do sleep 1; done && echo GREW"))
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "DISK vda bytes=67108864")

	cli.Replace("main.tf", `size = "64Mi"`, `size = "128Mi"`)
	says(t, cli.Must("plan", "-no-color"), "0 to add, 2 to change, 0 to destroy")
	cli.Must("apply", "-auto-approve", "-no-color")
	console.Await(t, "GREW")
	if boots := console.Boots(); boots != 1 {
		t.Errorf("the guest booted %d times", boots)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	if state := acctest.Must(os.ReadFile(filepath.Join(cli.Dir, "terraform.tfstate")))(t); strings.Contains(string(state), "67108864") || !strings.Contains(string(state), "134217728") {
		t.Errorf("the capacity was not measured: %s", state)
	}
	for _, command := range []string{"destroy", "start"} {
		acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), command, "web"))(t)
	}
	console.Await(t, "DISK vda bytes=134217728")

	for size, wrong := range map[string][]string{
		"64Mi": {"A volume does not shrink", "-replace"},
		"1Gi":  {"(413 Request Entity Too Large)", "-max-size", "The volume does not grow there", "-replace"},
	} {
		cli.Replace("main.tf", `size = "128Mi"`, `size = "`+size+`"`)
		out, err := cli.Run("apply", "-auto-approve", "-no-color")
		if err == nil {
			t.Errorf("%s: it was not refused: %s", size, out)
		}
		says(t, out, wrong...)
		cli.Replace("main.tf", `size = "`+size+`"`, `size = "128Mi"`)
		says(t, cli.Must("plan", "-no-color"), "No changes.")
	}
	cli.Must("destroy", "-auto-approve", "-no-color")
	if left := acctest.Must(filepath.Glob(filepath.Join(server.folder, "volume-*")))(t); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}
