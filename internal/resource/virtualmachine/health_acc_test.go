//go:build acc

package virtualmachine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// One guest runs into a full pool, is suspended, and loses its persistent definition: each plan warns, with libvirt's reason and a remedy,
// and an apply makes it persistent again without a restart.
func TestAccVirtualMachine_WarnsOfUnhealthyState(t *testing.T) {
	l := acctest.Lab(t)
	a, console := l.Hosts["host-a"], acctest.NewConsole(t)
	remove := acctest.Must(a.AddSmallPool(t.Context(), "tiny", 2<<20))(t)
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	virsh := func(args ...string) { acctest.Must(a.Virsh(t.Context(), args...))(t) }
	cli := acctest.NewCLI(t)
	cli.Write("provider.tf", strings.ReplaceAll(acctest.Provider(l, "unwell"), `slow =`, `tiny = "tiny", slow =`))
	cli.Write("main.tf", `
resource "virtclaim_disk" "data" {
  host       = "host-a"
  name       = "data"
  usage_type = "tiny"
  size       = "8Mi"
}
`+machine{disks: []string{"data = { volume = virtclaim_disk.data.volume }"}, log: console.Path(), more: `
  autostart  = true
  interfaces = { lan = { user = true } }
  timeouts   = { update = "50s" }`}.hcl(l))
	cli.Must("apply", "-auto-approve", "-no-color")
	defer func() { cli.Must("destroy", "-auto-approve", "-no-color") }()
	console.Await(t, "READY")

	virsh("vol-create-as", "tiny", "filler", "1M", "--allocation", "1M")
	ask(t, l, "dd if=/dev/urandom of=/dev/vda bs=1M count=1 2>/dev/null &")
	acctest.Eventually(t, "a paused guest", func() error {
		if out := acctest.Must(a.Virsh(context.Background(), "domstate", "web"))(t); !strings.Contains(out, "paused") {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
	acctest.Contains(t, plan(t, cli), "No changes", "Machine web is paused", "paused (I/O error)", "Disk data (vda", "no space left",
		"running = false", "force_stop = true", "virsh resume web")

	// A paused guest never acknowledges an unplug: the error comes at once, not at the timeout.
	cli.Replace("main.tf", "interfaces = { lan = { user = true } }", "interfaces = {}")
	out, err := cli.Run("apply", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("a paused guest has given its interface up")
	}
	acctest.Contains(t, joined(out), "did not acknowledge the unplug", "is paused (I/O error)")
	cli.Replace("main.tf", "interfaces = {}", "interfaces = { lan = { user = true } }")
	virsh("vol-delete", "filler", "tiny")
	virsh("resume", "web")
	ask(t, l, "wait; sync")
	acctest.Eventually(t, "the request to unplug it is answered now", func() error {
		if out := acctest.Must(a.Virsh(t.Context(), "domiflist", "web"))(t); strings.Contains(out, " user ") {
			return errors.New(out)
		}
		return nil
	})
	cli.Must("apply", "-auto-approve", "-no-color")
	if out := plan(t, cli); strings.Contains(out, "Machine web") {
		t.Error(out)
	}

	virsh("suspend", "web")
	acctest.Contains(t, plan(t, cli), "No changes", "paused (user)")
	virsh("resume", "web")

	// libvirt has the definition that it was started with only until libvirtd is restarted.
	virsh("undefine", "web")
	if err := errors.Join(a.Kill(t.Context()), a.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	acctest.Contains(t, plan(t, cli), "Machine web has no stored definition", `"running (transient)" -> (known after apply)`, "1 to change")
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, acctest.Must(a.Virsh(t.Context(), "dominfo", "web"))(t), "Persistent:     yes", "Autostart:      enable")
	if out := plan(t, cli); strings.Contains(out, "Machine web") || !strings.Contains(out, "No changes") || console.Boots() != 1 {
		t.Errorf("after %d boots: %s", console.Boots(), out)
	}

	kill(t, a.Dir)
	acctest.Contains(t, plan(t, cli), "Machine web had crashed", "shut off (crashed)", "1 to change")
}

// kill ends the QEMU of the machine web on the host that has this folder.
func kill(t *testing.T, dir string) {
	t.Helper()
	for _, name := range acctest.Must(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		line, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(line), "\x00guest=web,") || !strings.Contains(string(line), dir+"/") {
			continue
		}
		pid := acctest.Must(strconv.Atoi(filepath.Base(filepath.Dir(name))))(t)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no such QEMU of", dir)
}

func plan(t *testing.T, cli acctest.CLI) string {
	t.Helper()
	return joined(cli.Must("plan", "-no-color"))
}

// joined is Terraform's output without its line breaks and frames.
func joined(out string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", "", "╷", "", "╵", "").Replace(out)), " ")
}
