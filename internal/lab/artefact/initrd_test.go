package artefact

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
)

func TestInitrd_ModuleOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "initrd.gz")
	modules := []module{{"virtio", []byte("first")}, {"ahci", []byte("second")}}
	more := map[string][]module{"9p": {{"netfs", []byte("needed")}, {"9p", []byte("asked for")}}, "netfs": {{"netfs", []byte("needed")}}}
	if err := writeInitrd(path, []byte("busybox"), modules, more); err != nil {
		t.Fatal(err)
	}
	got := readInitrd(t, path)
	for name, want := range map[string]string{
		"modules/00-virtio.ko":   "first",
		"modules/01-ahci.ko":     "second",
		"more/netfs.ko":          "needed",
		"more/9p.ko":             "asked for",
		"more/9p":                "netfs\n9p\n",
		"bin/busybox":            "busybox",
		"bin/sh":                 "busybox",
		"init":                   string(initScript),
		"etc/acpi/PWRF/00000080": "/sbin/power-off",
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// readInitrd returns the content of files, and the targets of links, by path.
func readInitrd(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	uncompressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	archive := cpio.NewReader(uncompressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return content
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		content[header.Name] = string(data) + header.Linkname
	}
}
