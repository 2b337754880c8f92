//go:build acc

package volumecontent_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// BenchmarkContent measures how a qcow2 image of 1 GiB, half of it empty, is put onto a logical unit, against qemu-img convert of the same image onto the
// same unit in the same run: compare the ns/op of both. copy-ns/op is the part after the image was uploaded to the host, where qemu-img has it.
func BenchmarkContent(b *testing.B) {
	l := acctest.Lab(b)
	lun, err := l.Target.AddLUN(b.Context(), lab.LUNSpec{Size: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Target.RemoveLUN(context.Background(), lun) })
	image := halfEmpty(b)
	b.Run("virtclaim", func(b *testing.B) { benchmarkFill(b, l, lun, image) })
	b.Run("qemu-img", func(b *testing.B) {
		for b.Loop() {
			if out, err := exec.CommandContext(b.Context(), "qemu-img", "convert", "-n", "-O", "raw", image, l.Target.URL(lun)).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
}

// halfEmpty is a qcow2 image of 1 GiB whose even MiB have content.
func halfEmpty(b *testing.B) string {
	b.Helper()
	raw := filepath.Join(b.TempDir(), "image.raw")
	file, err := os.Create(raw)
	if err != nil {
		b.Fatal(err)
	}
	random, err := os.Open("/dev/urandom")
	if err != nil {
		b.Fatal(err)
	}
	for at := int64(0); at < 1<<30; at += 2 << 20 {
		if _, err := io.Copy(io.NewOffsetWriter(file, at), io.LimitReader(random, 1<<20)); err != nil {
			b.Fatal(err)
		}
	}
	if err := file.Truncate(1 << 30); err != nil {
		b.Fatal(err)
	}
	_, _ = file.Close(), random.Close()
	if out, err := exec.CommandContext(b.Context(), "qemu-img", "convert", "-O", "qcow2", raw, raw+".qcow2").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return raw + ".qcow2"
}

func benchmarkFill(b *testing.B, l *lab.Lab, lun lab.LUN, image string) {
	b.Helper()
	f := host.NewRegistry(map[string]host.Config{"host-a": {URI: l.Hosts["host-a"].URI}})
	defer f.Close()
	h, err := f.Host("host-a")
	if err != nil {
		b.Fatal(err)
	}
	portal, err := source.ParsePortal(l.Target.Portal)
	if err != nil {
		b.Fatal(err)
	}
	var began time.Time
	var copied time.Duration
	fill := content.Fill{
		Target: source.ISCSIVolume(portal, lun.IQN, int64(lun.Number), "", &lun.Size), Overwrite: true,
		Begin: func(context.Context) error {
			began = time.Now()
			return nil
		},
		End: func(context.Context) error {
			copied += time.Since(began)
			return nil
		},
		Source: content.Spec{Pool: "ssd", Content: &content.Image{
			ID: "benchmark", Open: func(context.Context) (io.ReadCloser, error) { return os.Open(image) },
		}},
		Acquire: func(context.Context, string, string) error { return nil },
	}
	maker := &content.Creator{Owner: "benchmark"}
	for b.Loop() {
		if err := maker.Fill(b.Context(), "host-a", h, fill, func(host.Progress) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(copied.Nanoseconds())/float64(b.N), "copy-ns/op")
}
