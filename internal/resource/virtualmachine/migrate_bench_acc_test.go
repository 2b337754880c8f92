//go:build acc

package virtualmachine_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// BenchmarkMigrate measures how long it takes to move N running machines (4), each with a claim on iSCSI to which its guest writes: by one
// apply, and by N virsh at the same time, in turns and in both directions. All are connected through the same taps, and each guest has
// written as many records since its start or its last move. one is a single machine, large one whose guest has
// filled 3 GiB of memory with random bytes, and gigabit the same over a network of 1 Gbit/s (119 MiB/s).
//
// apply/virsh compares the whole apply. move/virsh is without Terraform's part, terraform-s: an apply that changes only migration.timeout,
// which starts terraform and the provider, refreshes, and updates each machine, but moves nothing.
func BenchmarkMigrate(b *testing.B) {
	b.Run("many", func(b *testing.B) { benchmarkMigrate(b, machinesOr(b, "4"), 0, 0) })
	b.Run("one", func(b *testing.B) { benchmarkMigrate(b, 1, 0, 0) })
	b.Run("large", func(b *testing.B) { benchmarkMigrate(b, 1, 3<<10, 0) })
	b.Run("gigabit", func(b *testing.B) { benchmarkMigrate(b, 1, 3<<10, 119) })
}

// benchmarkMigrate moves n machines, each with that many MiB of memory that its guest has filled, at so many MiB/s (0 is without a limit).
func benchmarkMigrate(b *testing.B, n, filled, bandwidth int) {
	b.Helper()
	b.Logf("apply/virsh is the whole apply beside as many virsh migrate at once; move/virsh without terraform-s, an apply that changes "+
		"migration.timeout alone. Before each, each of %d guests has written %d records", n, warmth)
	m := newMigrated(b, n, filled, bandwidth)
	for b.Loop() {
		var moves, terraform, virsh, still, virshStill []float64
		var calls float64
		for i := range 8 {
			from, to := "host-a", "host-b"
			if i%2 == 1 {
				from, to = to, from
			}
			m.warmUp()
			if i%4 == 0 || i%4 == 3 { // so that both go in both directions
				m.on(to, i)
				moved := m.run("move", "apply", "-auto-approve")
				moves, calls = append(moves, moved.wall), moved.calls
				still = append(still, m.still(to))
				m.arrived()
				continue
			}
			virsh = append(virsh, m.virsh(from, to))
			virshStill = append(virshStill, m.still(to))
			m.arrived()
			m.on(to, i)
			m.run("accept what virsh has moved", "apply", "-auto-approve")
			m.on(to, i+1)
			terraform = append(terraform, m.run("another timeout", "apply", "-auto-approve").wall)
		}
		move, part, loop := median(moves), median(terraform), median(virsh)
		b.ReportMetric(move, "apply-s")
		b.ReportMetric(part, "terraform-s")
		b.ReportMetric(loop, "virsh-s")
		b.ReportMetric(move/loop, "apply/virsh")
		b.ReportMetric((move-part)/loop, "move/virsh")
		b.ReportMetric(median(still), "still-ms")
		b.ReportMetric(median(virshStill), "virsh-still-ms")
		b.ReportMetric(calls/float64(n), "calls/machine")
	}
	b.ReportMetric(0, "ns/op")
	m.run("destroy", "destroy", "-auto-approve")
}

// migrated are machines that are moved.
type migrated struct {
	measured
	lab       *lab.Lab
	filled    int
	bandwidth int // of the move in MiB/s, 0 is without a limit
	names     []string
	logs      []string
	// disks are what the guests write to, and written their records when they were started or moved last.
	disks   []string
	written []int
}

// warmth is how many records a guest writes before it is moved: some seconds, in which it also writes to its memory.
const warmth = 25

// newMigrated starts n machines on host-a, which fill so many MiB of their memory.
func newMigrated(b *testing.B, n, filled, bandwidth int) migrated {
	b.Helper()
	l := acctest.Lab(b)
	log := measureProvider(b)
	cli, taps := acctest.TappedHosts(b, l, "migrated")
	m := migrated{measured: measured{b, cli, taps, log}, lab: l, filled: filled, bandwidth: bandwidth}
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		lun := acctest.LUN(b, l, false, "")
		acctest.AddClaim(b, l, lab.ClaimSpec{Namespace: "migrated", Name: name, LUN: lun})
		m.names, m.logs = append(m.names, name), append(m.logs, acctest.NewConsole(b).Path())
		m.disks, m.written = append(m.disks, lun.Path), append(m.written, 0)
	}
	m.on("host-a", 0)
	m.run("create", "apply", "-auto-approve")
	for _, log := range m.logs {
		acctest.ConsoleAt(log).Await(b, "READY")
	}
	return m
}

// records are how many records a guest has written.
func (m migrated) records(i int) int {
	m.b.Helper()
	content, err := os.ReadFile(m.disks[i])
	if err != nil {
		m.b.Fatal(err)
	}
	n, err := lab.CheckRecords(string(content[lab.RecordsAt : lab.RecordsAt+lab.RecordsSize]))
	if err != nil {
		m.b.Fatal(err)
	}
	return n
}

func (m migrated) arrived() {
	for i := range m.names {
		m.written[i] = m.records(i)
	}
}

// warmUp waits until each guest has written records since it arrived.
func (m migrated) warmUp() {
	m.b.Helper()
	deadline := time.Now().Add(lab.Patience(time.Minute))
	for i := range m.names {
		for m.records(i) < m.written[i]+warmth {
			if time.Now().After(deadline) {
				m.b.Fatalf("guest %d has written %d records, and %d before", i, m.records(i), m.written[i])
			}
			<-time.After(50 * time.Millisecond)
		}
	}
}

// on configures the machines on a host, with a timeout that differs by n.
func (m migrated) on(host string, n int) {
	var config strings.Builder
	bandwidth := ""
	if m.bandwidth > 0 {
		bandwidth = fmt.Sprintf(", bandwidth = %d", m.bandwidth)
	}
	for i, name := range m.names {
		config.WriteString(claimBinding("migrated", name, "write-exclusive", "host-a", "host-b"))
		config.WriteString(machine{
			name: name, host: host, log: m.logs[i], disks: []string{disk("data", name, "virtio")},
			memory:  fmt.Sprintf("%dMi", 128+2*m.filled),
			cmdline: lab.WriteRecordsIn("vda", m.filled),
			more:    fmt.Sprintf("migration = { timeout = \"%dm\"%s }", 5+n, bandwidth),
		}.hcl(m.lab))
	}
	m.cli.Write("main.tf", config.String())
}

// virsh is how many seconds it takes to migrate the machines at once by virsh.
func (m migrated) virsh(from, to string) float64 {
	m.b.Helper()
	var all errgroup.Group
	start := time.Now()
	for _, name := range m.names {
		all.Go(func() error {
			out, err := exec.CommandContext(m.b.Context(), "virsh", "-c", m.taps[from].URI, "migrate", "--live", "--persistent",
				"--undefinesource", "--bandwidth", strconv.Itoa(m.bandwidth), name, m.taps[to].URI).CombinedOutput()
			if err != nil {
				return fmt.Errorf("migrate %s: %w: %s", name, err, out)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		m.b.Fatal(err)
	}
	return time.Since(start).Seconds()
}

// still is the longest time in milliseconds that a guest stood still in its last move, as both libvirts have measured it.
func (m migrated) still(host string) (longest float64) {
	m.b.Helper()
	for _, name := range m.names {
		out, err := m.lab.Hosts[host].Virsh(m.b.Context(), "domjobinfo", "--completed", name)
		at := downtime.FindStringSubmatch(out)
		if err != nil || at == nil {
			m.b.Fatalf("the last move of %s: %v: %s", name, err, out)
		}
		ms, err := strconv.ParseFloat(at[1], 64)
		if err != nil {
			m.b.Fatal(err)
		}
		longest = max(longest, ms)
	}
	return longest
}

var downtime = regexp.MustCompile(`Total downtime:\s+(\d+)`)

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
