package image_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// qemuImg runs qemu-img.
func qemuImg(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "qemu-img", args...).CombinedOutput(); err != nil {
		t.Fatalf("qemu-img %v: %v\n%s", args, err, out)
	}
}

// converted returns a qcow2 image of qemu-img for a disk with content at its beginning, in its middle and at its end.
func converted(t *testing.T, options string) []byte {
	t.Helper()
	raw := make([]byte, 20<<20)
	for _, at := range []int{0, 9 << 20, 20<<20 - 300<<10} {
		copy(raw[at:], bytes.Repeat([]byte("content."), 37500))
	}
	path := file(t, raw)
	qemuImg(t, "convert", "-f", "raw", "-O", "qcow2", "-o", options, path, path+".qcow2")
	return readFile(t, path+".qcow2")
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// whole checks an image like an upload.
func whole(t *testing.T, content []byte) error {
	t.Helper()
	head := content[:min(len(content), image.HeadSize)]
	if _, err := image.Probe(head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, image.Bounded(bytes.NewReader(content), head)); err != nil {
		return err
	}
	return image.CheckWhole(head, int64(len(content)), bytes.NewReader(content))
}

// Images of QEMU are complete, and truncated without their last cluster, or with only their header.
func TestCheckWhole_Truncated(t *testing.T) {
	for name, options := range map[string]string{
		"as usual": "compat=1.1", "compat 0.10": "compat=0.10", "extended L2": "extended_l2=on", "large clusters": "cluster_size=2M",
		"small clusters": "cluster_size=512", "narrow counts": "refcount_bits=1", "wide counts": "refcount_bits=64",
		"preallocated metadata": "preallocation=metadata", "preallocated": "preallocation=falloc",
	} {
		t.Run(name, func(t *testing.T) {
			content := converted(t, options)
			if err := whole(t, content); err != nil {
				t.Fatal(err)
			}
			cluster := 1 << content[23]
			for _, length := range []int{len(content) - cluster, len(content) / 2, max(image.HeadSize, 2*cluster)} {
				refused(t, whole(t, content[:length]), "It is cut off, or broken")
			}
		})
	}
}

// An image is complete also after writes, a resize, compression or snapshots.
func TestCheckWhole_Used(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"empty":   func(t *testing.T, _ string) { t.Helper() },
		"grown":   func(t *testing.T, path string) { t.Helper(); qemuImg(t, "resize", "-q", path, "200G") },
		"shrunk":  func(t *testing.T, path string) { t.Helper(); qemuImg(t, "resize", "-q", "--shrink", path, "1M") },
		"amended": func(t *testing.T, path string) { t.Helper(); qemuImg(t, "amend", "-o", "compat=0.10", path) },
		"snapshots": func(t *testing.T, path string) {
			t.Helper()
			for _, name := range []string{"a", "b"} {
				qemuImg(t, "snapshot", "-c", name, path)
			}
			qemuImg(t, "snapshot", "-d", "a", path)
		},
		"compressed": func(t *testing.T, path string) {
			t.Helper()
			raw := file(t, bytes.Repeat([]byte("content."), 1<<20))
			qemuImg(t, "convert", "-c", "-f", "raw", "-O", "qcow2", raw, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			qemuImg(t, "create", "-q", "-f", "qcow2", path, "100M")
			change(t, path)
			if err := whole(t, readFile(t, path)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Bytes after the clusters are refused if there are more than the header accounts for.
func TestBounded_Tail(t *testing.T) {
	head := converted(t, "compat=1.1")
	for _, c := range []struct {
		tail int64
		want string
	}{{50 << 20, ""}, {200 << 20, "twice what its size and its tables account for"}} {
		r := image.Bounded(io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, c.tail)), head[:image.HeadSize])
		switch _, err := io.Copy(io.Discard, r); {
		case c.want != "":
			refused(t, err, c.want)
		case err != nil:
			t.Error(err)
		}
	}
	raw := make([]byte, image.HeadSize)
	if n, err := io.Copy(io.Discard, image.Bounded(io.LimitReader(zeros{}, 1<<30), raw)); err != nil || n != 1<<30 {
		t.Errorf("a raw image has no such bound: %d bytes, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Persistent bitmaps, which QEMU keeps in memory, are refused with the command that removes them, and accepted once removed.
func TestProbe_Bitmaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	qemuImg(t, "create", "-q", "-f", "qcow2", path, "100M")
	qemuImg(t, "bitmap", "--add", path, "b0")
	_, err := image.Probe(readFile(t, path)[:image.HeadSize])
	refused(t, err, "qemu-img bitmap --remove")
	qemuImg(t, "bitmap", "--remove", path, "b0")
	if _, err := image.Probe(readFile(t, path)[:image.HeadSize]); err != nil {
		t.Error(err)
	}
}

// An overlay is not refused because of its backing file, but because of anything else that QEMU would open.
func TestProbeOverlay(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a backing file":             {[]string{"-u", "-b", "/etc/passwd", "-F", "raw"}, ""},
		"no backing file":            {nil, ""},
		"a data file":                {[]string{"-o", "data_file=" + filepath.Join(dir, "data")}, "keeps its data in another file"},
		"a data file that is hidden": {[]string{"-o", "data_file=" + filepath.Join(dir, "raw") + ",data_file_raw=on"}, "keeps its data in another file"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		qemuImg(t, append(append([]string{"create", "-q", "-f", "qcow2"}, c.args...), path, "100M")...)
		content := readFile(t, path)
		is, err := image.ProbeOverlay(content[:min(len(content), image.HeadSize)])
		switch {
		case c.want != "":
			refused(t, err, c.want)
		case err != nil || is.Format != "qcow2":
			t.Errorf("%s: %+v, %v", name, is, err)
		}
	}
}
