//go:build acc

package volumecontent_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// BenchmarkContent measures how a qcow2 image of 1 GiB, half of it empty, is put onto a logical unit, against qemu-img convert of the same image onto the
// same unit in the same run: compare the ns/op. on-the-host is a volume that the host has, as qemu-img has it; uploaded is a file from elsewhere, which has
// to come to the host before.
func BenchmarkContent(b *testing.B) {
	l := acctest.Lab(b)
	lun, err := l.Target.AddLUN(b.Context(), lab.LUNSpec{Size: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Target.RemoveLUN(context.Background(), lun) })
	image := halfEmpty(b)
	b.Run("on-the-host", func(b *testing.B) {
		benchmarkFill(b, l, lun, content.Spec{Pool: "ssd", Mode: volume.CopyOnWrite, Master: volume.Volume{
			Images: []volume.Image{{Type: "file", Name: image, Format: "qcow2", Binding: "image", Hosts: []string{"host-a"}}}, Capacity: &lun.Size,
		}})
	})
	b.Run("uploaded", func(b *testing.B) {
		benchmarkFill(b, l, lun, content.Spec{Pool: "ssd", Content: &content.Image{
			ID: "benchmark", Open: func(context.Context) (io.ReadCloser, error) { return os.Open(image) },
		}})
	})
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

func benchmarkFill(b *testing.B, l *lab.Lab, lun lab.LUN, from content.Spec) {
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
	fill := content.Fill{
		Target: source.ISCSIVolume(portal, lun.IQN, int64(lun.Number), "", &lun.Size), Overwrite: true, Source: from,
		Begin:   func(context.Context) error { return nil },
		End:     func(context.Context) error { return nil },
		Acquire: func(context.Context, string, string) error { return nil },
	}
	maker := &content.Creator{Owner: "benchmark"}
	for b.Loop() {
		if err := maker.Fill(b.Context(), "host-a", h, fill, func(host.Progress) {}); err != nil {
			b.Fatal(err)
		}
	}
}
