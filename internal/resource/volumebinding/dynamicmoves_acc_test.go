//go:build acc

package volumebinding_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// elsewhere is another address of what is at an address.
func elsewhere(t *testing.T, address string) (other string) {
	t.Helper()
	l := acctest.Must(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	acctest.Undo(t, func(context.Context) error { return l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				to, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
				if err == nil {
					go func() { _, _ = io.Copy(to, conn); _ = to.Close() }()
					_, _ = io.Copy(conn, to)
				}
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// The server is asked once at each refresh. Another address of a volume is taken over, and has running machines pending; another volume only when
// no machine runs with the former. A server that can't tell, or has lost the volume, is a warning.
func TestAccVolumeBinding_DynamicMoves(t *testing.T) {
	l := acctest.Lab(t)
	c := control(t, l, "dynamic-moves")
	lun := acctest.LUN(t, l, false, "")
	here := lunAnswer(l, lun)
	portal := elsewhere(t, l.Target.Portal)
	_, herePort, _ := net.SplitHostPort(l.Target.Portal)
	_, otherPort, _ := net.SplitHostPort(portal)
	there := strings.Replace(here, herePort, otherPort, 1)
	c.say("answer", here)
	cli := configured(t, l, "moves", binding(c.source(`size = "1Gi"`, ""), "", "host-a")+`
resource "virtclaim_virtual_machine" "web" {
  host       = "host-a"
  name       = "web"
  memory     = "64Mi"
  running    = false
  force_stop = true
  machine    = { type = "pc", domain_type = "qemu" }
  disks      = { data = { volume = virtclaim_volume_binding.data.volume } }
}
`)
	cli.Must("apply", "-auto-approve", "-no-color")
	c.asked()
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	if got := c.asked(); got != "PUT size=1Gi" {
		t.Errorf("it was asked %q", got)
	}
	xml := func(option string, want, not string) {
		t.Helper()
		text := acctest.Must(l.Hosts["host-a"].Virsh(t.Context(), append([]string{"dumpxml", "web"}, strings.Fields(option)...)...))(t)
		if !strings.Contains(text, want) || strings.Contains(text, not) {
			t.Errorf("want %s, not %s:\n%s", want, not, text)
		}
	}

	c.say("answer", there)
	says(t, cli.Must("plan", "-no-color"), otherPort, "0 to add, 2 to change, 0 to destroy")
	cli.Must("apply", "-auto-approve", "-no-color")
	xml("", otherPort, herePort)
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	cli.Replace("main.tf", "running    = false", "running    = true")
	cli.Must("apply", "-auto-approve", "-no-color")
	c.say("answer", here)
	cli.Must("apply", "-auto-approve", "-no-color")
	xml("", otherPort, herePort)
	xml("--inactive", herePort, otherPort)
	says(t, cli.Must("show", "-no-color"), "pending")
	says(t, cli.Must("plan", "-no-color"), "No changes.")

	c.say("refuse", "PUT")
	says(t, cli.Must("plan", "-no-color"), "No changes.", "Where the volume of binding data is, is not known", "not today")
	c.say("refuse", "")
	volume := acctest.Must(filepath.Glob(filepath.Join(c.folder, "volume-*")))(t)[0]
	if err := os.Rename(volume, volume+".away"); err != nil {
		t.Fatal(err)
	}
	says(t, cli.Must("plan", "-no-color"), "No changes.", "the volume is no longer there")
	if err := os.Rename(volume+".away", volume); err != nil {
		t.Fatal(err)
	}

	second := acctest.LUN(t, l, false, "")
	first, other := fmt.Sprintf("%s/%d", lun.IQN, lun.Number), fmt.Sprintf("%s/%d", second.IQN, second.Number)
	c.say("answer", lunAnswer(l, second))
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Errorf("it was applied: %s", out)
	}
	says(t, out, "the volume was "+first, herePort, "and the server names "+other, herePort, "Domain web on host host-a runs with the former")
	xml("--inactive", first+"'", other+"'")
	c.say("answer", here)
	cli.Replace("main.tf", "running    = true", "running    = false")
	cli.Must("apply", "-auto-approve", "-no-color")
	c.say("answer", lunAnswer(l, second))
	cli.Must("apply", "-auto-approve", "-no-color")
	xml("", other+"'", first+"'")
	says(t, cli.Must("plan", "-no-color"), "No changes.")
	cli.Must("destroy", "-auto-approve", "-no-color")
	c.volumes(0)
	c.objects(0)
}
