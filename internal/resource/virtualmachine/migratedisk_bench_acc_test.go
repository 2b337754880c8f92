//go:build acc

package virtualmachine_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// filled is how many bytes of a disk of 2 GiB have random content.
const filled = 512 << 20

// BenchmarkMigrateDisk measures how long it takes to move a running machine with a disk of its host: by an apply, which updates disk and
// machine, and by virsh migrate --copy-storage-inc of a domain with the same disk, kernel and memory, whose empty disk on the other host is
// made before, in turns and in both directions. The guests write all the time.
func BenchmarkMigrateDisk(b *testing.B) {
	l := acctest.Lab(b)
	log := measureProvider(b)
	cli, taps := acctest.TappedHosts(b, l, "measured")
	m := measured{b, cli, taps, log}
	vm := machine{
		log: acctest.NewConsole(b).Path(), cmdline: lab.WriteRecords("vda"), disks: []string{told("root", "virtclaim_disk.root")},
	}
	on := func(host string) {
		vm.host = host
		cli.Write("main.tf", diskOn(host, "root", `size = "2Gi"`)+vm.hcl(l))
	}
	cli.Write("main.tf", diskOn("host-a", "root", `size = "2Gi"`))
	m.run("create the disk", "apply", "-auto-approve")
	twin := newTwin(b, l, taps)
	twin.fill(twin.path("host-a", "root"), twin.path("host-a", "twin"))
	on("host-a")
	m.run("create", "apply", "-auto-approve")
	twin.start("web", vm.log)
	for b.Loop() {
		var moves, loops []float64
		for _, way := range [][2]string{{"host-a", "host-b"}, {"host-b", "host-a"}, {"host-a", "host-b"}, {"host-b", "host-a"}} {
			on(way[1])
			moves = append(moves, m.run("move", "apply", "-auto-approve").wall)
			loops = append(loops, twin.migrate(way[0], way[1]))
		}
		move, loop := median(moves), median(loops)
		b.ReportMetric(move, "apply-s")
		b.ReportMetric(loop, "virsh-s")
		b.ReportMetric(move/loop, "apply/virsh")
	}
	b.ReportMetric(0, "ns/op")
	twin.virsh("host-a", "destroy", "twin")
	twin.virsh("host-a", "undefine", "twin")
	if err := os.Remove(twin.path("host-a", "twin")); err != nil {
		b.Fatal(err)
	}
	m.run("destroy", "destroy", "-auto-approve")
}

// twin is a domain of the name twin, which is migrated by virsh.
type twin struct {
	b    *testing.B
	lab  *lab.Lab
	taps map[string]*lab.Tap
}

func newTwin(b *testing.B, l *lab.Lab, taps map[string]*lab.Tap) twin {
	b.Helper()
	return twin{b, l, taps}
}

func (w twin) path(host, name string) string {
	return filepath.Join(w.lab.Hosts[host].Dir, "pools", "ssd", name)
}

func (w twin) virsh(host string, args ...string) string {
	w.b.Helper()
	out, err := exec.CommandContext(w.b.Context(), "virsh", append([]string{"-c", w.taps[host].URI}, args...)...).CombinedOutput()
	if err != nil {
		w.b.Fatalf("virsh %q: %v: %s", args, err, out)
	}
	return string(out)
}

// qemuImg runs qemu-img. Files that it makes are QEMU's to write.
func (w twin) qemuImg(args ...string) {
	w.b.Helper()
	if out, err := exec.CommandContext(w.b.Context(), "qemu-img", args...).CombinedOutput(); err != nil {
		w.b.Fatalf("qemu-img %q: %v: %s", args, err, out)
	}
}

// fill writes the same random content into an image and a new one.
func (w twin) fill(image, other string) {
	w.b.Helper()
	raw := filepath.Join(w.b.TempDir(), "raw")
	f, err := os.Create(raw)
	if err == nil {
		_, err = f.Seek(lab.RecordsAt+lab.RecordsSize, io.SeekStart)
	}
	if err == nil {
		_, err = io.CopyN(f, rand.Reader, filled)
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Truncate(raw, 2<<30)
	}
	if err != nil {
		w.b.Fatal(err)
	}
	w.qemuImg("convert", "-n", "-f", "raw", "-O", "qcow2", raw, image)
	w.qemuImg("convert", "-f", "raw", "-O", "qcow2", raw, other)
}

var (
	hasMetadata = regexp.MustCompile(`(?s)<metadata>.*?</metadata>`)
	hasUUID     = regexp.MustCompile(`<uuid>.*?</uuid>`)
)

// start defines and starts the domain on host-a, as a machine is there.
func (w twin) start(name, log string) {
	w.b.Helper()
	xml := hasUUID.ReplaceAllString(hasMetadata.ReplaceAllString(w.virsh("host-a", "dumpxml", "--inactive", name), ""), "")
	xml = strings.NewReplacer("<name>"+name+"</name>", "<name>twin</name>", w.path("host-a", "root"), w.path("host-a", "twin"),
		log, acctest.NewConsole(w.b).Path()).Replace(xml)
	w.virsh("host-a", "define", w.file(xml))
	w.virsh("host-a", "start", "twin")
}

func (w twin) file(text string) string {
	w.b.Helper()
	name := filepath.Join(w.b.TempDir(), "xml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		w.b.Fatal(err)
	}
	return name
}

// migrate is how many seconds it takes to migrate the domain, and to remove its former disk.
func (w twin) migrate(from, to string) float64 {
	w.b.Helper()
	there := func(flag string) string {
		return w.file(strings.ReplaceAll(w.virsh(from, "dumpxml", flag, "twin"), w.path(from, "twin"), w.path(to, "twin")))
	}
	live, stored := there("--migratable"), there("--inactive")
	start := time.Now()
	w.qemuImg("create", "-q", "-f", "qcow2", w.path(to, "twin"), fmt.Sprint(2<<30))
	w.virsh(from, "migrate", "--live", "--persistent", "--undefinesource", "--copy-storage-inc", "--migrate-disks", "vda", "--xml", live,
		"--persistent-xml", stored, "twin", w.taps[to].URI)
	if err := os.Remove(w.path(from, "twin")); err != nil {
		w.b.Fatal(err)
	}
	return time.Since(start).Seconds()
}
