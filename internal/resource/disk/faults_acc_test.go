//go:build acc

package disk_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// scenario is a change of a configuration that is interrupted.
type scenario struct {
	name string
	// before is applied without a fault, then after with one; either may be empty.
	before, after string
	// calls are the calls of the change to the host, and how often each occurs.
	calls map[lab.Call]int
	// check checks the host after the next apply.
	check func(t *testing.T)
	// then is applied at the end; it may be empty.
	then string
}

func scenarios(t *testing.T, l *lab.Lab, source string, console acctest.Console, master lab.LUN) []scenario {
	t.Helper()
	clone := source + disk("root", over("clone", "virtclaim_volume_binding.golden"))
	overlay := source + disk("root", over("copy-on-write", "virtclaim_volume_binding.golden"))
	raw := disk("plain", "format = \"raw\"\n size = \"1Mi\"")
	machine := vm(l, console, "", "force_stop = true", on("root", theDisk, ""))
	whole := func(t *testing.T) { t.Helper(); isWhole(t, l, master) }
	runs := func(t *testing.T) { t.Helper(); acctest.RunsAsStored(t, l.Hosts["host-a"], "web") }
	grown := func(s string) string { return strings.Replace(s, "usage_type", "size = \"96Mi\"\n  usage_type", 1) }
	return []scenario{
		{"create an overlay", source, overlay, map[lab.Call]int{lab.CallDefine: 1, lab.CallVolumeCreate: 1, lab.CallVolumeUpload: 1}, nil, ""},
		{"create a raw disk", source, source + raw, map[lab.Call]int{lab.CallSecretDefine: 1}, nil, ""},
		{"create a clone", source, clone, map[lab.Call]int{
			lab.CallDefine: 2, lab.CallVolumeCreate: 1, lab.CallDomainCreateFlags: 1, lab.CallBlockPull: 1, lab.CallDestroy: 1,
		}, whole, ""},
		{"create one whose name is made up", source, strings.Replace(clone, "name       =", "name_prefix =", 1), map[lab.Call]int{
			lab.CallDefine: 2, lab.CallVolumeCreate: 1, lab.CallBlockPull: 1,
		}, whole, ""},
		{"grow in a paused domain", clone, grown(clone), map[lab.Call]int{lab.CallCreateXML: 1, lab.CallBlockResize: 1}, whole, ""},
		{"grow a raw disk", raw, strings.Replace(raw, "1Mi", "2Mi", 1), map[lab.Call]int{lab.CallSecretDefine: 1}, func(t *testing.T) {
			t.Helper()
			before, _, _ := strings.Cut(virsh(t, l, "secret-list"), "volume virtclaim ssd/plain")
			entry := before[strings.LastIndex(before, "\n")+1:]
			acctest.Contains(t, virsh(t, l, "secret-dumpxml", strings.TrimSpace(entry)), "which is raw and has 1048576 bytes, or 2097152 bytes") // it may not have grown
		}, ""},
		{"grow through the machine", overlay + machine, grown(overlay) + machine, map[lab.Call]int{lab.CallBlockResize: 1}, runs, ""},
		{"delete", overlay, source, map[lab.Call]int{lab.CallVolumeDelete: 1}, nil, ""},
		{
			"delete one that is plugged in", overlay + disk("data", blank) + vm(l, console, "", "force_stop = true",
				on("root", theDisk, ""), on("vol", "virtclaim_disk.data", "")), overlay + machine,
			map[lab.Call]int{lab.CallDetach: 2, lab.CallDefine: 1, lab.CallVolumeDelete: 1},
			runs, "",
		},
		{
			"plug in", overlay + machine, overlay + disk("data", blank) + vm(l, console, "", "force_stop = true",
				on("root", theDisk, ""), on("vol", "virtclaim_disk.data", "")),
			map[lab.Call]int{lab.CallDefine: 3, lab.CallSetMetadata: 1, lab.CallAttach: 1},
			runs, "",
		},
	}
}

// After an interruption at any point one more apply leads to the configured state, and in the end nothing is left.
func TestAccDisk_FaultInjection(t *testing.T) {
	l := acctest.Lab(t)
	lun, source := golden(t, l, strings.Repeat("content.", 4<<20))
	untouched(t, lun.Path)
	console := acctest.NewConsole(t)
	for _, s := range scenarios(t, l, source, console, lun) {
		for _, f := range acctest.Points(s.calls, acctest.CutsAndKills) {
			t.Run(s.name+"/"+f.String(), func(t *testing.T) { interrupt(t, s, f) })
		}
	}
}

func interrupt(t *testing.T, s scenario, f lab.Fault) {
	t.Helper()
	l := acctest.Lab(t)
	cli, tap := acctest.Tapped(t, l, "disks")
	if s.before != "" {
		cli.Write("main.tf", s.before)
		cli.Must("apply", "-auto-approve", "-no-color")
	}
	defer cli.Must("destroy", "-auto-approve", "-no-color")

	cli.Write("main.tf", s.after)
	_, _ = acctest.Interrupt(t, cli, tap, f) // the apply may survive a cut
	acctest.PutRight(t, cli, s.check)
	if s.then != "" {
		cli.Write("main.tf", s.then)
		cli.Must("apply", "-auto-approve", "-no-color")
	}
}

// isWhole fails the test unless the only clone on the host equals its master.
func isWhole(t *testing.T, l *lab.Lab, master lab.LUN) {
	t.Helper()
	clones, err := filepath.Glob(file(l, "root*"))
	if err != nil || len(clones) != 1 {
		t.Errorf("on the host is not one clone: %v, %v", clones, err)
		return
	}
	out, err := exec.CommandContext(t.Context(), "qemu-img", "compare", "-f", "qcow2", "-F", "raw", clones[0], master.Path).CombinedOutput()
	if err != nil {
		t.Errorf("the clone is not whole: %v: %s", err, out)
	}
}
