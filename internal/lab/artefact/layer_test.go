package artefact

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archived is an archive with these entries, as a package has them.
func archived(t *testing.T, entries ...tar.Header) *tar.Reader {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		content := make([]byte, e.Size)
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return tar.NewReader(&archive)
}

// Files of packages get below /usr, so that no folder replaces a link of the base.
func TestLayer_KeepsLinksOwnersAndModes(t *testing.T) {
	files := layerFiles{}
	err := files.read(archived(
		t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"},
		tar.Header{Name: "./lib/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "./lib/libone.so.1", Typeflag: tar.TypeReg, Mode: 0o644, Size: 3},
		tar.Header{Name: "./lib/libone.so", Typeflag: tar.TypeSymlink, Linkname: "libone.so.1"},
		tar.Header{Name: "./bin/another", Typeflag: tar.TypeLink, Linkname: "./bin/one"},
		tar.Header{Name: "./bin/one", Typeflag: tar.TypeReg, Mode: 0o4755, Uid: 7, Gid: 8},
		tar.Header{Name: "./usr/share/doc/one/copyright", Typeflag: tar.TypeReg},
	))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "layer.tar")
	if err := files.write(to); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"usr/bin/one  4755 7:8 0", "usr/lib/  755 0:0 0", "usr/lib/libone.so libone.so.1 0 0:0 0", "usr/lib/libone.so.1  644 0:0 3",
		"usr/bin/another usr/bin/one 0 0:0 0",
	}
	var got []string
	for from := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %o %d:%d %d", h.Name, h.Linkname, h.Mode, h.Uid, h.Gid, h.Size))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
