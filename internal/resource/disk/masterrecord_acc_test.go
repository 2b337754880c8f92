//go:build acc

package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// goldenFile is the binding virtclaim_volume_binding.data of a file of host-a, from which machines read only.
func goldenFile(path string) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "data" {
  name        = "data"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { file = { path = %q } }
}
`, path)
}

// The master file of overlays, as of a golden claim, is replaced outside of Terraform: no machine is started over the other content.
// Another overlay of it may be created.
func TestAccDisk_MasterReplaced(t *testing.T) {
	l := acctest.Lab(t)
	image := filepath.Join(t.TempDir(), "disk.img")
	replace := func() {
		fresh := image + ".new"
		before := time.Now().Add(-time.Hour)
		if err := errors.Join(os.WriteFile(fresh, bytes.Repeat([]byte{1}, 1<<20), 0o644), os.Chtimes(fresh, before, before), os.Rename(fresh, image)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	config := acctest.Provider(l, "disks") + goldenFile(image)
	overlay := over("copy-on-write", "virtclaim_volume_binding.data")
	machine := strings.NewReplacer("virtclaim_disk.golden", "virtclaim_disk.over", "running = false",
		"force_stop = true\n  allow_restart = true").Replace(writer)
	cli := acctest.NewCLI(t)
	refused := func() {
		t.Helper()
		if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("the master was deleted, written to or replaced").MatchString(out) {
			t.Errorf("%v:\n%s", err, out)
		}
	}
	cli.Write("main.tf", config+disk("over", overlay)+machine)
	cli.Must("apply", "-auto-approve", "-no-color")
	if err := os.Link(image, image+".kept"); err != nil {
		t.Fatal(err)
	}
	replace()
	if out := cli.Must("plan", "-no-color"); !message("No changes", "The master of disk host-a/ssd/over has changed", "Recorded was").MatchString(out) {
		t.Errorf("the plan does not warn of it:\n%s", out)
	}
	cli.Replace("main.tf", `"32Mi"`, `"48Mi"`)
	refused()
	cli.Write("main.tf", config+disk("over", overlay))
	if out := cli.Must("plan", "-no-color"); !message("1 to destroy", "The master of disk host-a/ssd/over has changed", "do not stop them").MatchString(out) {
		t.Errorf("the plan of a destroy does not warn of it:\n%s", out)
	}
	cli.Write("main.tf", config+disk("over", overlay)+disk("second", overlay)+machine)
	cli.Must("apply", "-auto-approve", "-no-color", "-target=virtclaim_disk.second")
	if out := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "domstate", "writer"))(t); !strings.Contains(out, "running") {
		t.Errorf("the machine is %s", out)
	}
	acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), "destroy", "writer"))(t)
	refused()
	cli.Must("destroy", "-auto-approve", "-no-color", "-target=virtclaim_disk.second")
	if err := os.Rename(image+".kept", image); err != nil {
		t.Fatal(err)
	}
	cli.Write("main.tf", config+disk("over", overlay)+machine)
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Write("main.tf", config)
	virsh(t, l, "suspend", "writer") // its firmware would ignore its power button
	cli.Must("apply", "-auto-approve", "-no-color")
	replace()
	cli.Write("main.tf", config+disk("over", overlay))
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
}
