//go:build acc

package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

// createVolume creates a volume as Host.Upload requires it.
func createVolume(t testing.TB, h *host.Host, name string) {
	t.Helper()
	createVolumeIn(t, h, "ssd", name)
}

func createVolumeIn(t testing.TB, h *host.Host, pool, name string) {
	t.Helper()
	err := h.CreateVolume(t.Context(), pool, libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1}, Allocation: &libvirtxml.StorageVolumeSize{},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
}

// emptyVolume is createVolume for the duration of the test.
func emptyVolume(t testing.TB, h *host.Host, name string) {
	t.Helper()
	createVolume(t, h, name)
	t.Cleanup(func() {
		if err := h.DeleteVolume(context.WithoutCancel(t.Context()), "ssd", name); err != nil {
			t.Error(err)
		}
	})
}

// into uploads an image into an empty volume.
func into(ctx context.Context, h *host.Host, name string, image io.Reader) error {
	return h.Upload(ctx, host.Upload{
		Pool: "ssd", Name: name, Image: image,
		BeforeCommit: func(context.Context) error { return nil }, Report: func(host.Progress) {},
	})
}

// upload creates a volume, uploads an image into it and returns the content of its file.
func upload(t *testing.T, h *host.Host, name string, image io.Reader) (content []byte, err error) {
	t.Helper()
	emptyVolume(t, h, name)
	err = into(t.Context(), h, name, image)
	return contentOf(t, h, name), err
}

// contentOf returns the content of a volume's file.
func contentOf(t *testing.T, h *host.Host, name string) []byte {
	t.Helper()
	v, err := h.Volume(t.Context(), "ssd", name)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(v.Path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// noise returns data without a block of zeros.
func noise(length int) []byte {
	data := make([]byte, length)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(data)
	return data
}

func TestAccUpload(t *testing.T) {
	l := acctest.Lab(t)
	h, _ := hostA(t, l)
	noise := noise(3<<20 + 17)
	for name, image := range map[string][]byte{
		"short": []byte("a short image"),
		"head":  noise[:64<<10],
		"long":  noise,
		"holes": bytes.Join([][]byte{noise[:1<<20], make([]byte, 5<<20), noise, make([]byte, 9<<20)}, nil),
		"empty": make([]byte, 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := upload(t, h, "uploaded-"+name, bytes.NewReader(image))
			if err != nil || !bytes.Equal(got, image) {
				t.Errorf("%v, and %d of %d bytes are there", err, len(got), len(image))
			}
		})
	}
}

// An upload that was delayed just before its end does not write into another owner's volume that was created under its name in
// between.
func TestAccUpload_NeverIntoRecreatedVolume(t *testing.T) {
	h, _ := hostA(t, acctest.Lab(t))
	emptyVolume(t, h, "taken-over")
	theirs := noise(100 << 10)
	err := h.Upload(t.Context(), host.Upload{
		Pool: "ssd", Name: "taken-over", Image: bytes.NewReader(make([]byte, 1<<20)), Report: func(host.Progress) {},
		BeforeCommit: func(ctx context.Context) error {
			if err := h.DeleteVolume(ctx, "ssd", "taken-over"); err != nil {
				return err
			}
			createVolume(t, h, "taken-over")
			return into(ctx, h, "taken-over", bytes.NewReader(theirs))
		},
	})
	if !errors.Is(err, host.ErrTorn) {
		t.Errorf("got %v", err)
	}
	if got := contentOf(t, h, "taken-over"); !bytes.Equal(got, theirs) {
		t.Errorf("%d bytes are there, which are not what was written last", len(got))
	}
}

// If BeforeCommit refuses, the volume keeps the text that marks it as unfinished.
func TestAccUpload_RefusedCommitWritesNoHead(t *testing.T) {
	h, _ := hostA(t, acctest.Lab(t))
	emptyVolume(t, h, "left")
	gone := errors.New("it is somebody else's now")
	err := h.Upload(t.Context(), host.Upload{
		Pool: "ssd", Name: "left", Image: bytes.NewReader(noise(1 << 20)), Report: func(host.Progress) {},
		BeforeCommit: func(context.Context) error { return gone },
	})
	if got := contentOf(t, h, "left"); !errors.Is(err, gone) || !bytes.HasPrefix(got, []byte("virtclaim: this upload is not finished\n")) {
		t.Errorf("got %v, and %q", err, got[:min(len(got), 40)])
	}
}

// tapped returns host-a through a tap that counts bytes.
func tapped(t testing.TB, l *lab.Lab) (*host.Host, *lab.Tap) {
	t.Helper()
	return tappedHost(t, l.Hosts["host-a"])
}

func tappedHost(t testing.TB, at *lab.Host) (*host.Host, *lab.Tap) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tap") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	tap, err := lab.NewTap(t.Context(), at, dir)
	if err != nil {
		t.Fatal(err)
	}
	f := host.NewRegistry(map[string]host.Config{at.Name: {URI: tap.URI}})
	t.Cleanup(func() {
		f.Close()
		_ = tap.Close()
		_ = os.RemoveAll(dir)
	})
	h, err := f.Host(at.Name)
	if err != nil {
		t.Fatal(err)
	}
	return h, tap
}

// sparse writes a file of mib MiB. Of every four MiB, full are noise and the others a hole.
func sparse(t testing.TB, mib, full int) image.LocalFile {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	data := noise(full << 20)
	for at := 0; at < mib; at += 4 {
		if _, err := f.WriteAt(data, int64(at)<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Truncate(int64(mib)<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	return image.LocalFile{Path: f.Name()}
}

// open opens an image as a disk with a local file as its source does.
func open(t testing.TB, f image.LocalFile) io.ReadCloser {
	t.Helper()
	content, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = content.Close() })
	return content
}

func TestAccUpload_SkipsHoles(t *testing.T) {
	const data = 16 << 20
	l := acctest.Lab(t)
	h, tap := tapped(t, l)
	content := open(t, sparse(t, 64, 1))
	emptyVolume(t, h, "holes")
	if err := into(t.Context(), h, "holes", content); err != nil {
		t.Fatal(err)
	}
	if sent := tap.Uploaded(); sent < data || sent > data*102/100 {
		t.Errorf("%d bytes went over the wire for %d bytes of data", sent, data)
	}
}

// An image that arrives slowly, or stalls for a while, does not delay other calls to libvirt.
func TestAccUpload_DoesNotDelayCalls(t *testing.T) {
	l := acctest.Lab(t)
	h, _ := hostA(t, l)
	emptyVolume(t, h, "slow")
	content, feed := io.Pipe()
	uploaded := make(chan error, 1)
	go func() { uploaded <- into(t.Context(), h, "slow", content) }()
	ctx, part := soon(t, 30*time.Second), noise(256<<10)
	for n := range 100 {
		if _, err := feed.Write(part); err != nil {
			t.Fatal(err)
		}
		// The upload sends the last available data, then waits for more.
		if _, err := h.LookupByName(ctx, "nobody"); !errors.Is(err, host.ErrNotFound) {
			t.Fatalf("call %d: %v", n, err)
		}
	}
	_ = feed.Close()
	if err := <-uploaded; err != nil {
		t.Error(err)
	}
}

// An image is not held in memory, however large it is.
func TestAccUpload_BoundedMemory(t *testing.T) {
	const most = 32 << 20
	l := acctest.Lab(t)
	h, _ := hostA(t, l)
	content := open(t, sparse(t, 256, 2))
	emptyVolume(t, h, "large")
	peak := heapDuring(func() {
		if err := into(t.Context(), h, "large", content); err != nil {
			t.Error(err)
		}
	})
	if peak > most {
		t.Errorf("the upload took %d bytes of memory, which is more than %d", peak, most)
	}
}

// heapDuring returns by how many bytes the heap in use grows while f runs, sampled every few milliseconds.
func heapDuring(f func()) int64 {
	runtime.GC()
	start := heap()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	peak := start
	for {
		select {
		case <-tick.C:
			peak = max(peak, heap())
		case <-done:
			return max(peak, heap()) - start
		}
	}
}

// heap returns runtime.MemStats.HeapInuse without stopping the world.
func heap() (bytes int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		bytes += int64(s.Value.Uint64())
	}
	return bytes
}
