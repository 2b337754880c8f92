//go:build acc

package virtualmachine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// BenchmarkPlan measures an unchanged plan of N machines (50) that are off, each with an overlay of one claim and a blank disk, and of six
// times as many: seconds, and the provider's processor time and memory. terraform_data is a plan of as many objects that have no provider of
// their own. With the path of another provider in VIRTCLAIM_BENCH_BASE both plan in turn, and the ratios to that one are reported, too.
func BenchmarkPlan(b *testing.B) {
	n := machinesOr(b, "50")
	l := acctest.Lab(b)
	acctest.AddClaim(b, l, lab.ClaimSpec{Namespace: "planned", Name: "golden", LUN: acctest.LUN(b, l, false, "")})
	self, err := lab.Root()
	if err != nil {
		b.Fatal(err)
	}
	of := map[string]planRun{"": plannedBy(b, l, filepath.Join(self, ".lab", "bin", "terraform-provider-virtclaim"), "a", n)}
	if base := os.Getenv("VIRTCLAIM_BENCH_BASE"); base != "" {
		of["base-"] = plannedBy(b, l, base, "b", n)
	}
	data := acctest.NewCLI(b)
	data.Write("main.tf", fmt.Sprintf("resource \"terraform_data\" \"any\" {\n  count = %d\n}\n", 3*n+1))
	for b.Loop() {
		data.Must("apply", "-auto-approve", "-no-color")
		for _, p := range of {
			p.cli.Must("apply", "-auto-approve", "-no-color")
		}
		once := medians(of)
		start := time.Now()
		data.Must("plan", "-detailed-exitcode", "-no-color")
		b.ReportMetric(time.Since(start).Seconds(), "terraform_data-s")
		report(b, once)
		present := map[string]planRun{"": of[""]}
		present[""].cli.Write("main.tf", machinesOnTwo("a", 6*n))
		present[""].cli.Must("apply", "-auto-approve", "-no-color")
		more := medians(present)[""]
		b.ReportMetric(more.wall/6/once[""].wall, "6n-s/6/n-s")
		b.ReportMetric(more.cpu/6/once[""].cpu, "6n-cpu/6/n-cpu")
		b.ReportMetric(more.mebibytes, "6n-MiB")
		for _, p := range of {
			p.cli.Must("destroy", "-auto-approve", "-no-color")
		}
	}
	b.ReportMetric(0, "ns/op")
}

func report(b *testing.B, costs map[string]planCost) {
	b.Helper()
	for prefix, c := range costs {
		b.ReportMetric(c.wall, prefix+"s")
		b.ReportMetric(c.cpu, prefix+"cpu-s")
		b.ReportMetric(c.mebibytes, prefix+"MiB")
		b.ReportMetric(float64(c.lines), prefix+"lines")
	}
	if base, has := costs["base-"]; has {
		b.ReportMetric(costs[""].wall/base.wall, "s/base")
		b.ReportMetric(costs[""].cpu/base.cpu, "cpu/base")
	}
}

// machinesOnTwo are n machines, each with an overlay of the claim golden and a blank disk.
func machinesOnTwo(prefix string, n int) string {
	return fmt.Sprintf(`
resource "virtclaim_volume_binding" "golden" {
  name        = "golden-%[1]s"
  hosts       = ["host-a"]
  access_mode = "read-shared"
  source      = { persistent_volume_claim = { namespace = "planned", claim_name = "golden" } }
}
resource "virtclaim_disk" "root" {
  count      = %[2]d
  host       = "host-a"
  name       = "%[1]s-root-${count.index}"
  usage_type = "fast"
  source     = { volume = virtclaim_volume_binding.golden.volume }
  copy_mode  = "copy-on-write"
}
resource "virtclaim_disk" "data" {
  count      = %[2]d
  host       = "host-a"
  name       = "%[1]s-data-${count.index}"
  usage_type = "fast"
  size       = "1Mi"
}
resource "virtclaim_virtual_machine" "web" {
  count   = %[2]d
  host    = "host-a"
  name    = "%[1]s-web-${count.index}"
  memory  = "32Mi"
  running = false
  machine = { type = "pc", domain_type = "qemu" }
  disks = {
    root = { volume = virtclaim_disk.root[count.index].volume }
    data = { volume = virtclaim_disk.data[count.index].volume }
  }
}
`, prefix, n)
}

// planRun is a configuration, and the file that each process of its provider adds a usage to.
type planRun struct {
	b   *testing.B
	cli acctest.CLI
	log string
}

func plannedBy(b *testing.B, l *lab.Lab, provider, prefix string, n int) planRun {
	b.Helper()
	p := planRun{b, acctest.CLI{}, filepath.Join(b.TempDir(), "usage")}
	p.cli = acctest.NewCLI(b).WithProvider(measuring(b, provider, p.log))
	p.cli.Write("provider.tf", acctest.Provider(l, "planned-"+prefix))
	p.cli.Write("main.tf", machinesOnTwo(prefix, n))
	return p
}

// measuring is a folder with a provider whose processes note their usage in a file.
func measuring(b *testing.B, provider, log string) (dir string) {
	b.Helper()
	dir = b.TempDir()
	const script = "#!/bin/sh\nexec time --quiet --append --output=%q --format='{\"User\":%%U,\"System\":%%S,\"KiB\":%%M}' %q\n"
	run := fmt.Appendf(nil, script, log, provider)
	if err := os.WriteFile(filepath.Join(dir, "terraform-provider-virtclaim"), run, 0o755); err != nil {
		b.Fatal(err)
	}
	return dir
}

type planCost struct {
	wall, cpu, mebibytes float64
	// lines is how long the plan of a new machine and its disks is.
	lines int
}

// usage is a process's, in seconds of processors and in MiB at most.
type usage struct{ CPU, MiB float64 }

// usageIn is that of all processes in a log.
func usageIn(b *testing.B, log string) (all usage) {
	b.Helper()
	text, err := os.ReadFile(log)
	for line := range strings.Lines(string(text)) {
		var of struct{ User, System, KiB float64 }
		err = cmp.Or(err, json.Unmarshal([]byte(line), &of))
		all.CPU, all.MiB = all.CPU+of.User+of.System, max(all.MiB, of.KiB/1024)
	}
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// medians plans three times, each configuration in turn.
func medians(of map[string]planRun) map[string]planCost {
	all := map[string][]planCost{}
	for range 3 {
		for prefix, p := range of {
			all[prefix] = append(all[prefix], p.plan())
		}
	}
	found := map[string]planCost{}
	for prefix, costs := range all {
		middle := func(of func(planCost) float64) float64 {
			slices.SortFunc(costs, func(a, b planCost) int { return cmp.Compare(of(a), of(b)) })
			return of(costs[len(costs)/2])
		}
		found[prefix] = planCost{
			middle(func(c planCost) float64 { return c.wall }), middle(func(c planCost) float64 { return c.cpu }),
			middle(func(c planCost) float64 { return c.mebibytes }), costs[0].lines,
		}
	}
	return found
}

// plan is what an unchanged plan costs.
func (p planRun) plan() (c planCost) {
	p.b.Helper()
	_ = os.Remove(p.log)
	start := time.Now()
	p.cli.Must("plan", "-detailed-exitcode", "-no-color")
	c.wall = time.Since(start).Seconds()
	used := usageIn(p.b, p.log)
	c.cpu, c.mebibytes = used.CPU, used.MiB
	shown := p.cli.Must("state", "show", "-no-color", "virtclaim_disk.root[0]") + p.cli.Must("state", "show", "-no-color", "virtclaim_virtual_machine.web[0]")
	c.lines = strings.Count(shown, "\n")
	p.b.Logf("%.2f s, %.2f s of processors, %.0f MiB", c.wall, c.cpu, c.mebibytes)
	return c
}
