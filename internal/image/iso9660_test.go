package image_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/kdomanski/iso9660"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func iso(t *testing.T, files ...image.ISOFile) []byte {
	t.Helper()
	got, err := image.ISO("cidata", files...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Another implementation can read the image.
func TestISO_IsRead(t *testing.T) {
	files := map[string]string{"user-data": "#cloud-config\n", "meta-data": strings.Repeat("x", 5000), "network-config": ""}
	var all []image.ISOFile
	for name, content := range files {
		all = append(all, image.ISOFile{Name: name, Content: []byte(content)})
	}
	read, err := iso9660.OpenImage(bytes.NewReader(iso(t, all...)))
	if err != nil {
		t.Fatal(err)
	}
	if label, err := read.Label(); err != nil || label != "cidata" {
		t.Errorf("the label is %q, %v", label, err)
	}
	root, err := read.RootDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := root.GetChildren()
	if err != nil || len(found) != len(files) {
		t.Fatalf("%d files, %v", len(found), err)
	}
	for _, f := range found {
		content, err := io.ReadAll(f.Reader())
		if want, ok := files[f.Name()]; err != nil || !ok || string(content) != want {
			t.Errorf("%s has %q, %v", f.Name(), content, err)
		}
	}
}

func TestISO_IsReproducible(t *testing.T) {
	a, b := image.ISOFile{Name: "a", Content: []byte("1")}, image.ISOFile{Name: "b", Content: []byte("2")}
	if !bytes.Equal(iso(t, a, b), iso(t, b, a)) {
		t.Error("the order of files matters")
	}
	if len(iso(t, a, b))%2048 != 0 {
		t.Error("it does not end with a sector")
	}
}

func TestISO_Names(t *testing.T) {
	for _, name := range []string{"", "a/b", "a;1", strings.Repeat("a", 29)} {
		if _, err := image.ISO("cidata", image.ISOFile{Name: name}); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
