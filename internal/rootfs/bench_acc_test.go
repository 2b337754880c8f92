//go:build acc

package rootfs_test

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// BenchmarkRootFS measures how four layers, of 430 MB as tar archives, become the images of disks, against tar -x of the same archives in the same
// run: compare the ns/op. one-more-layer opens the images of the four, and adds a layer of 4 MB. MiB is the most memory of the process so far.
func BenchmarkRootFS(b *testing.B) {
	dir := b.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	var layers []string
	for n, files := range []int{2500, 1500, 200, 4000} {
		layers = append(layers, filepath.Join(dir, fmt.Sprint("layer-", n+1, ".tar")))
		writeLayer(b, layers[n], random, files, 430<<20/4/files)
	}
	more := filepath.Join(dir, "more.tar")
	writeLayer(b, more, random, 100, 40<<10)
	b.Run("virtclaim", func(b *testing.B) {
		for b.Loop() {
			f := rootfs.New([16]byte{1})
			for n, layer := range layers {
				applyFile(b, f, layer, image(dir, n+1), n)
			}
		}
		reportMemory(b)
	})
	b.Run("tar", func(b *testing.B) {
		for b.Loop() {
			root := b.TempDir()
			for _, layer := range layers {
				if out, err := exec.CommandContext(b.Context(), "tar", "-xf", layer, "-C", root).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		}
	})
	b.Run("one-more-layer", func(b *testing.B) {
		for b.Loop() {
			var below []io.ReaderAt
			for n := range layers {
				in, err := os.Open(image(dir, n+1))
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = in.Close() })
				below = append(below, in)
			}
			f, err := rootfs.Open([16]byte{1}, below)
			if err != nil {
				b.Fatal(err)
			}
			applyFile(b, f, more, image(dir, len(layers)+1), len(layers))
		}
		reportMemory(b)
	})
}

func image(dir string, n int) string { return filepath.Join(dir, fmt.Sprint("layer-", n, ".qcow2")) }

func applyFile(b *testing.B, f *rootfs.FileSystem, layer, name string, below int) {
	b.Helper()
	in, err := os.Open(layer)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	backing := ""
	if below > 0 {
		backing = fmt.Sprint("layer-", below, ".qcow2")
	}
	if err := apply(f, bufio.NewReaderSize(in, 1<<20), name, backing); err != nil {
		b.Fatal(err)
	}
}

func reportMemory(b *testing.B) {
	b.Helper()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys>>20), "MiB")
}

// writeLayer writes a layer of files of random content.
func writeLayer(b *testing.B, name string, random io.Reader, files, size int) {
	b.Helper()
	out, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	buffered := bufio.NewWriterSize(out, 1<<20)
	w := tar.NewWriter(buffered)
	for n := range files {
		err = errors.Join(err, w.WriteHeader(&tar.Header{
			Name: fmt.Sprintf("usr/share/%s-%d/file-%d", filepath.Base(name), n/100, n), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(size), ModTime: time.Unix(1e9, 0),
		}))
		_, e := io.CopyN(w, random, int64(size))
		err = errors.Join(err, e)
	}
	if err := errors.Join(err, w.Close(), buffered.Flush(), out.Close()); err != nil {
		b.Fatal(err)
	}
}
