//go:build acc

package disk_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// manyLayers are as many as many images of applications have.
const manyLayers = 40

// filesOf are the files of that image, one of each layer.
func filesOf(tag string, layers int) (names []string) {
	for n := range layers {
		names = append(names, fmt.Sprintf("%s-%02d", tag, n))
	}
	return names
}

// manyLayered is an image of that many small layers.
func manyLayered(t testing.TB, l *lab.Lab, tag string, layers int) lab.RegistryImage {
	t.Helper()
	registry, err := l.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image, err := registry.AddImage(t.Context(), lab.ImageSpec{
		Repository: "disks/root", Tag: tag, Layers: layersOf(filesOf(tag, layers)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// cost is what a command of terraform costs on a host.
type cost struct {
	calls int
	wall  time.Duration
}

func costOf(t testing.TB, cli acctest.CLI, tap *lab.Tap, what string, args ...string) (c cost) {
	t.Helper()
	before, start := tap.Counts(), time.Now()
	cli.Must(append(args, "-no-color")...)
	c.wall = time.Since(start)
	after, kinds := tap.Counts(), []string{}
	for _, call := range slices.Sorted(maps.Keys(after)) {
		if n := after[call] - before[call]; n > 0 {
			c.calls += n
			kinds = append(kinds, fmt.Sprintf("%d %s", n, call))
		}
	}
	t.Logf("%s: %d calls in %.2f s: %s", what, c.calls, c.wall.Seconds(), strings.Join(kinds, ", "))
	return c
}

// What each layer costs in calls to the host: when it is made, and when it is there, for another configuration. What a disk costs besides
// is that of one over a single layer.
func TestAccDisk_RootFilesystemCalls(t *testing.T) {
	l := acctest.Lab(t)
	costs := map[int][]int{}
	for _, layers := range []int{1, 1 + manyLayers} {
		image := manyLayered(t, l, fmt.Sprint("counted-", layers), layers)
		for _, first := range []string{"first", "second"} {
			name := fmt.Sprintf("%s-%d", first, layers)
			cli, tap := acctest.Tapped(t, l, "counted-"+name)
			cli.Write("main.tf", disk(name, rootFilesystem(image.Reference)))
			is := costOf(t, cli, tap, name, "apply", "-auto-approve")
			costs[layers] = append(costs[layers], is.calls)
			defer cli.Must("destroy", "-auto-approve", "-no-color")
			hasFiles(t, file(l, name), filesOf(fmt.Sprint("counted-", layers), layers)...)
		}
	}
	for n, most := range []int{12, 3} {
		if is := costs[1+manyLayers][n] - costs[1][n]; is > most*manyLayers {
			t.Errorf("%d layers cost %d calls, and each at most %d", manyLayers, is, most)
		}
	}
}

// BenchmarkRootFilesystem makes the root file system of an image of 40 layers, and a second one over the same layers. With
// VIRTCLAIM_BENCH_BASE, the path of another provider, that is measured beside it.
func BenchmarkRootFilesystem(b *testing.B) {
	l := acctest.Lab(b)
	image := manyLayered(b, l, "measured", manyLayers)
	measure := func(what string) (first, second cost) {
		cli, tap := acctest.Tapped(b, l, "measured")
		config := disk("root", rootFilesystem(image.Reference))
		cli.Write("main.tf", config)
		first = costOf(b, cli, tap, what+": the first disk", "apply", "-auto-approve")
		cli.Write("main.tf", config+disk("second", rootFilesystem(image.Reference)))
		second = costOf(b, cli, tap, what+": the second disk", "apply", "-auto-approve")
		costOf(b, cli, tap, what+": both destroyed", "destroy", "-auto-approve")
		return first, second
	}
	for b.Loop() {
		first, second := measure("this provider")
		b.ReportMetric(first.wall.Seconds(), "s")
		b.ReportMetric(float64(first.calls)/manyLayers, "calls/layer")
		b.ReportMetric(second.wall.Seconds(), "second-s")
		b.ReportMetric(float64(second.calls)/manyLayers, "second-calls/layer")
		if base := os.Getenv("VIRTCLAIM_BENCH_BASE"); base != "" {
			b.Setenv("VIRTCLAIM_TEST_PROVIDER", providerIn(b, base))
			firstOfBase, secondOfBase := measure("the other provider")
			b.ReportMetric(first.wall.Seconds()/firstOfBase.wall.Seconds(), "first/base")
			b.ReportMetric(second.wall.Seconds()/secondOfBase.wall.Seconds(), "second/base")
		}
	}
	b.ReportMetric(0, "ns/op") // it would be that of all commands
}

// providerIn is a folder with a provider under the name that terraform looks for.
func providerIn(b *testing.B, file string) (folder string) {
	b.Helper()
	folder = b.TempDir()
	file, err := filepath.Abs(file)
	if err := cmp.Or(err, os.Symlink(file, filepath.Join(folder, "terraform-provider-virtclaim"))); err != nil {
		b.Fatal(err)
	}
	return folder
}
