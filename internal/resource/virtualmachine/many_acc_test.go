//go:build acc

package virtualmachine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// Thirty machines, each with its own disk, are created and destroyed at the same time on two hosts.
func TestAccVirtualMachine_ManyAtOnce(t *testing.T) {
	const n = 30
	l := acctest.Lab(t)
	cli := acctest.NewCLI(t)
	cli.Write("main.tf", acctest.Provider(l, "many")+fmt.Sprintf(`
resource "virtclaim_disk" "root" {
  count      = %d
  host       = count.index %% 2 == 0 ? "host-a" : "host-b"
  name       = "root-${count.index}"
  usage_type = "fast"
  size       = "1Mi"
}
resource "virtclaim_virtual_machine" "web" {
  count      = %[1]d
  host       = virtclaim_disk.root[count.index].host
  name       = "web-${count.index}"
  memory     = "32Mi"
  machine    = { type = "q35", domain_type = "qemu" }
  disks      = { root = { volume = virtclaim_disk.root[count.index].volume } }
  force_stop = true
  timeouts   = { delete = "20s" }
}
`, n))
	if out := cli.Must("apply", "-auto-approve", "-no-color", "-parallelism=30"); !strings.Contains(out, fmt.Sprintf("%d added, 0 changed", 2*n)) {
		t.Error(out)
	}
	for key, h := range l.Hosts {
		if out, err := h.Virsh(t.Context(), "list", "--name"); err != nil || strings.Count(out, "web-") != n/2 {
			t.Errorf("%s runs, of %d machines: %v\n%s", key, n/2, err, out)
		}
	}
	if out, err := cli.Run("plan", "-detailed-exitcode", "-no-color"); err != nil {
		t.Errorf("a second plan is not empty: %v\n%s", err, out)
	}
	if out := cli.Must("destroy", "-auto-approve", "-no-color", "-parallelism=30"); !strings.Contains(out, fmt.Sprintf("%d destroyed", 2*n)) {
		t.Error(out)
	}
}
