//go:build acc

package virtualmachine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// obstacle is a machine that can't be moved, and why.
type obstacle struct {
	// resources are HCL with the host of the machine, which is idle.
	resources string
	machine   machine
	why       string
}

func obstaclesOf(t *testing.T, l *lab.Lab) map[string]obstacle {
	t.Helper()
	device := acctest.Loop(t, l)
	return map[string]obstacle{
		"scratch": {
			`
resource "virtclaim_disk" "scratch" {
  host       = "host-a"
  hosts      = ["host-a", "host-b"]
  name       = "scratch"
  usage_type = "shared"
  size       = "1Mi"
}
`,
			machine{disks: []string{`root = { volume = virtclaim_disk.scratch.volume, ephemeral = true, bus = "virtio" }`}},
			"its disk root is ephemeral",
		},
		"folders": {
			"",
			machine{more: fmt.Sprintf(`filesystems = { files = { source = %q, driver = "9p" } }`, t.TempDir())},
			"it has filesystems",
		},
		"devices": {
			"",
			machine{more: `running = false
  devices_xml = "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0' slot='31' function='0'/></source></hostdev>"`},
			"it has a device of its host (<hostdev> in devices_xml)",
		},
		"block": {
			named("block", bound(fmt.Sprintf("block = { path = %q }", device.Path), "write-exclusive", "host-a", "host-b")),
			machine{disks: []string{disk("root", "block", "virtio")}},
			"its disk root is " + device.Path + ", which may be another device on each host",
		},
		"namesake": {"", machine{}, "host host-b has another domain of the name namesake"},
	}
}

// What can't be moved is replaced as long as the configuration does not say otherwise, with a warning of why; with a mode, the plan is
// refused. Only what it can't take along live goes offline.
func TestAccVirtualMachine_MoveObstacles(t *testing.T) {
	l := acctest.Lab(t)
	all := obstaclesOf(t, l)
	definition := filepath.Join(t.TempDir(), "namesake.xml")
	xml := `<domain type='qemu'><name>namesake</name><memory unit='MiB'>32</memory><os><type>hvm</type></os></domain>`
	if err := os.WriteFile(definition, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	acctest.Must(l.Hosts["host-b"].Virsh(t.Context(), "define", definition))(t)
	acctest.Undo(t, func(ctx context.Context) error {
		_, err := l.Hosts["host-b"].Virsh(ctx, "undefine", "namesake")
		return err
	})
	cli := acctest.NewCLI(t)
	_, provider := withSharedPool(t, l, "obstacles")
	cli.Write("provider.tf", provider)
	on := func(host, mode string, names ...string) {
		t.Helper()
		for name, o := range all {
			m, at, way := o.machine, "host-a", ""
			if len(names) == 0 || strings.Contains(strings.Join(names, " "), name) {
				at, way = host, mode
			}
			m.name, m.host, m.idle = name, at, true
			if way != "" {
				m.more += fmt.Sprintf("\n  migration = { mode = %q }", way)
			}
			cli.Write(name+".tf", o.resources+m.hcl(l))
		}
	}
	on("host-a", "")
	cli.Must("apply", "-auto-approve", "-no-color")
	before := domains(t, l)

	on("host-b", "")
	out := joined(plan(t, cli))
	acctest.Contains(t, out, "5 to add", "0 to change")
	for name, o := range all {
		acctest.Contains(t, out, "Machine host-a/"+name+" is replaced, not moved",
			"Machine host-a/"+name+" can't be moved to host host-b: "+o.why)
	}
	for _, mode := range []string{"live", "offline"} {
		on("host-b", mode)
		found := cli.PlanErrors()
		for name, o := range all {
			if mode == "offline" && (name == "folders" || name == "scratch") {
				if found[name] != "" {
					t.Errorf("%s can be moved offline: %s", name, found[name])
				}
				continue
			}
			acctest.Contains(t, found[name], "The machine can't be moved\n", `host       = "host-b"`,
				"can't be moved to host host-b: "+o.why)
			if detail := strings.Split(found[name], "\n")[2]; len(detail) > 300 {
				t.Errorf("the error has %d characters: %s", len(detail), detail)
			}
		}
	}
	if after := domains(t, l); after != before {
		t.Errorf("plans have changed\n%s to\n%s", before, after)
	}

	on("host-b", "replace", "scratch")
	cli.Replace("folders.tf", `"host-a"`, `"host-b"`)
	cli.Replace("folders.tf", "force_stop = true", "force_stop = true\n  migration  = { mode = \"offline\" }")
	idle(t, l, "host-a", "scratch", "folders")
	out = joined(plan(t, cli))
	acctest.Contains(t, out, "virtclaim_virtual_machine.scratch must be replaced",
		"virtclaim_virtual_machine.folders will be updated in-place")
	if strings.Contains(out, "not moved") {
		t.Errorf("a warning of a replacement that is wanted:\n%s", out)
	}
	cli.Must("apply", "-auto-approve", "-no-color")
	acctest.Contains(t, plan(t, cli), "No changes.")
	for name, isSame := range map[string]bool{"scratch": false, "folders": true} {
		isOnly(t, l, name, "host-b", "running")
		id := strings.TrimSpace(acctest.Must(l.Hosts["host-b"].Virsh(t.Context(), "domuuid", name))(t))
		if strings.Contains(before, id) != isSame {
			t.Errorf("machine %s has the UUID %s; before, there were\n%s", name, id, before)
		}
	}
	idle(t, l, "host-a", "block", "namesake")
	idle(t, l, "host-b", "scratch", "folders")
	cli.Must("destroy", "-auto-approve", "-no-color")
}

// domains are the UUIDs of the hosts' domains.
func domains(t *testing.T, l *lab.Lab) (all string) {
	t.Helper()
	for _, key := range []string{"host-a", "host-b"} {
		all += key + "\n" + acctest.Must(l.Hosts[key].Virsh(t.Context(), "list", "--all", "--uuid"))(t)
	}
	return all
}

// idle suspends machines, which are forced off at once then.
func idle(t *testing.T, l *lab.Lab, host string, names ...string) {
	t.Helper()
	for _, name := range names {
		acctest.Must(l.Hosts[host].Virsh(t.Context(), "suspend", name))(t)
	}
}
