//go:build acc

package virtualmachine_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// BenchmarkApply measures N machines (25), each on an overlay of one claim: their calls, the provider's processor time, and the time
// compared with a loop of virsh that makes the same. far is one machine on a host that takes 20 ms for each reply, alone and beside a hundred
// others.
func BenchmarkApply(b *testing.B) {
	b.Run("many", benchmarkMany)
	b.Run("far", func(b *testing.B) { benchmarkFar(b, 0) })
	b.Run("far-beside-100", func(b *testing.B) { benchmarkFar(b, 100) })
}

func benchmarkMany(b *testing.B) {
	n := machinesOr(b, "25")
	l := acctest.Lab(b)
	acctest.AddClaim(b, l, lab.ClaimSpec{Namespace: "measured", Name: "golden", LUN: acctest.LUN(b, l, false, "")})
	m := measure(b, l)
	m.cli.Write("main.tf", overlays(n))
	for b.Loop() {
		apply := m.run("apply", "apply", "-auto-approve")
		plan := m.run("unchanged plan", "plan", "-detailed-exitcode")
		m.loop(n, "virsh vol-dumpxml root-$i ssd >root-$i.xml; virsh dumpxml --inactive web-$i >web-$i.xml; virsh suspend web-$i") // or each is waited for a minute
		destroy := m.run("destroy", "destroy", "-auto-approve")
		loop := m.loop(n, "virsh vol-create ssd root-$i.xml; virsh define web-$i.xml; virsh start web-$i")
		m.loop(n, "virsh destroy web-$i; virsh undefine web-$i; virsh vol-delete root-$i ssd")
		b.ReportMetric(apply.calls/float64(n), "calls/machine")
		b.ReportMetric(apply.cpu/float64(n), "cpu-s/machine")
		b.ReportMetric(apply.wall/float64(n), "s/machine")
		b.ReportMetric(apply.wall/loop, "apply/loop")
		b.ReportMetric(plan.calls, "plan-calls")
		b.ReportMetric(plan.bytes, "plan-bytes")
		b.ReportMetric(plan.wall, "plan-s")
		b.ReportMetric(destroy.calls/float64(2*n+1), "destroy-calls/object")
	}
	b.ReportMetric(0, "ns/op") // it would be that of all commands
}

// machinesOr is the number of machines in the variable N, or else the usual one.
func machinesOr(b *testing.B, usual string) int {
	b.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("N"), usual))
	if err != nil || n < 1 {
		b.Fatalf("N must be a number of machines, and is %q", os.Getenv("N"))
	}
	return n
}

func benchmarkFar(b *testing.B, others int) {
	b.Helper()
	l := acctest.Lab(b)
	beside(b, l.Hosts["host-a"], others)
	dir := filepath.Dir(acctest.ImageIn(b, b.TempDir(), "disk.img"))
	source := &corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}
	acctest.AddClaim(b, l, lab.ClaimSpec{Namespace: "measured", Name: "golden", Filesystem: true, Size: acctest.StorageSize, Source: source})
	m := measure(b, l)
	m.taps["host-a"].Delay(20 * time.Millisecond)
	for b.Loop() {
		m.cli.Write("main.tf", onClaim("measured", ""))
		m.cli.Write("data.tf", "")
		create := m.run("create and start", "apply", "-auto-approve")
		m.cli.Write("data.tf", plugged)
		m.cli.Replace("main.tf", "disks      = { root", "disks      = { data = { volume = virtclaim_disk.data.volume }, root")
		plug := m.run("hot-plug", "apply", "-auto-approve")
		m.loop(1, "virsh suspend web")
		m.run("destroy", "destroy", "-auto-approve")
		b.ReportMetric(create.wall, "create-s-at-20ms")
		b.ReportMetric(plug.wall, "plug-s-at-20ms")
	}
	b.ReportMetric(0, "ns/op")
}

// beside defines other domains on a host, with a disk each.
func beside(b *testing.B, h *lab.Host, n int) {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		name := fmt.Sprintf("other-%d", i)
		err := h.DefineXML(b.Context(), fmt.Sprintf(`<domain type='qemu'><name>%s</name><memory unit='MiB'>16</memory><os><type>hvm</type></os><devices>
			<disk type='file'><driver name='qemu' type='qcow2'/><source file='%s'/><target dev='vda' bus='virtio'/></disk></devices></domain>`,
			name, filepath.Join(dir, name)))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if _, err := h.Virsh(context.Background(), "undefine", name); err != nil {
				b.Error(err)
			}
		})
	}
}

// overlays are n machines, each on its own overlay of the claim golden.
func overlays(n int) string {
	count := fmt.Sprintf("\n  count = %d", n)
	return strings.NewReplacer(
		`"virtclaim_disk" "root" {`, `"virtclaim_disk" "root" {`+count, `= "root"`, `= "root-${count.index}"`, `disk.root.volume`, `disk.root[count.index].volume`,
		`"virtclaim_virtual_machine" "web" {`, `"virtclaim_virtual_machine" "web" {`+count, `= "web"`, `= "web-${count.index}"`,
	).Replace(onClaim("measured", ""))
}

// measured is a configuration whose commands are measured, and the taps of its hosts; each of the provider's processes notes its usage in a log.
type measured struct {
	b    *testing.B
	cli  acctest.CLI
	taps map[string]*lab.Tap
	log  string
}

type cost struct{ calls, bytes, wall, cpu float64 }

func measure(b *testing.B, l *lab.Lab) measured {
	b.Helper()
	log := measureProvider(b)
	cli, tap := acctest.Tapped(b, l, "measured")
	return measured{b, cli, map[string]*lab.Tap{"host-a": tap}, log}
}

// measureProvider has the provider's processes note their usage in a log.
func measureProvider(b *testing.B) (log string) {
	b.Helper()
	root, err := lab.Root()
	if err != nil {
		b.Fatal(err)
	}
	log = filepath.Join(b.TempDir(), "usage")
	b.Setenv("VIRTCLAIM_TEST_PROVIDER", measuring(b, filepath.Join(root, ".lab", "bin", "terraform-provider-virtclaim"), log))
	return log
}

// run is what a command of terraform costs.
func (m measured) run(what string, args ...string) (c cost) {
	m.b.Helper()
	_ = os.Remove(m.log)
	before, received := m.counts()
	start := time.Now()
	m.cli.Must(append(args, "-no-color")...)
	c.wall = time.Since(start).Seconds()
	after, all := m.counts()
	c.bytes = all - received
	var kinds []string
	for _, call := range slices.Sorted(maps.Keys(after)) {
		if n := after[call] - before[call]; n > 0 {
			c.calls += float64(n)
			kinds = append(kinds, fmt.Sprintf("%d %s", n, call))
		}
	}
	c.cpu = usageIn(m.b, m.log).CPU
	m.b.Logf("%s: %.0f calls, %.0f bytes, %.2f s, %.2f s of processors: %s", what, c.calls, c.bytes, c.wall, c.cpu, strings.Join(kinds, ", "))
	return c
}

// counts are the calls to all hosts until now, and the bytes of their replies.
func (m measured) counts() (calls map[lab.Call]int, received float64) {
	calls = map[lab.Call]int{}
	for _, tap := range m.taps {
		for call, n := range tap.Counts() {
			calls[call] += n
		}
		received += float64(tap.Received())
	}
	return calls, received
}

// loop is how many seconds commands take for n machines, one after the other. Their virsh is connected through the tap as the provider is.
func (m measured) loop(n int, commands string) float64 {
	m.b.Helper()
	cmd := exec.CommandContext(m.b.Context(), "bash", "-euc", fmt.Sprintf("for ((i = 0; i < %d; i++)); do %s; done", n, commands))
	cmd.Dir, cmd.Env = filepath.Dir(m.log), append(os.Environ(), "VIRSH_DEFAULT_CONNECT_URI="+m.taps["host-a"].URI)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		m.b.Fatalf("%s: %v: %s", commands, err, out)
	}
	return time.Since(start).Seconds()
}
