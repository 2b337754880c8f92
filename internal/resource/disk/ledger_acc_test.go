//go:build acc

package disk_test

import (
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// The host's ledger has the format raw for the file that it was recorded for: after an import, a header that a guest wrote does not make
// that file qcow2, and an overlay under the name of a former raw disk keeps its master.
func TestAccDisk_LedgerOfRawDisks(t *testing.T) {
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	refused := func(command string, want ...string) {
		t.Helper()
		if out, err := cli.Run(command, "-no-color"); err == nil || !message(want...).MatchString(out) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	master := acctest.Provider(l, "disks") + disk("master", `size = "16Mi"`)
	cli.Write("main.tf", master+disk("plain", "format = \"raw\"\n size = \"16Mi\""))
	cli.Must("apply", "-auto-approve", "-no-color")

	writeHead(t, l, "plain")
	cli.Must("state", "rm", "virtclaim_disk.plain")
	cli.Write("main.tf", master+disk("plain", "format = \"qcow2\"\n size = \"16Mi\""))
	cli.Must("import", "-no-color", "virtclaim_disk.plain", "host-a/ssd/plain")
	refused("plan", "The imported disk is raw", "volume virtclaim ssd/plain")

	virsh(t, l, "vol-delete", "plain", "--pool", "ssd")
	virsh(t, l, "vol-create-as", "ssd", "plain", "16M", "--format", "qcow2", "--backing-vol", "master", "--backing-vol-format", "qcow2")
	cli.Must("state", "rm", "virtclaim_disk.plain")
	cli.Write("main.tf", acctest.Provider(l, "disks"))
	if out, err := cli.Run("apply", "-auto-approve", "-no-color"); err == nil || !message("other volumes are overlays of it", "ssd/plain").MatchString(out) {
		t.Errorf("the master was removed: %v\n%s", err, out)
	}
	virsh(t, l, "vol-delete", "plain", "--pool", "ssd")
	cli.Write("main.tf", master+disk("plain", blank)) // which replaces the entry
	cli.Must("apply", "-auto-approve", "-no-color")
	cli.Must("destroy", "-auto-approve", "-no-color")
	nothingIn(t, l, "ssd")
}
