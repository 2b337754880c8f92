package image_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

func TestLocalFile_Judge(t *testing.T) {
	raw := disk(300_000)
	for name, c := range map[string]struct {
		content []byte
		length  int64
		want    string
	}{
		"raw":                    {raw, 300_000, ""},
		"raw in gzip":            {gzipped(t, raw), 300_000, ""},
		"gzip that is cut off":   {gzipped(t, raw)[:200_000], 0, "its gzip archive is cut off"},
		"a fixed VHD":            {fixedVHD(raw), 0, "a fixed VHD"}, // only its end shows it
		"a pointer of Git LFS":   {lfsPointer, 0, "git lfs pull"},
		"another format in gzip": {gzipped(t, slices.Concat([]byte("KDMV"), raw)), 0, "it is in the format VMDK"},
	} {
		t.Run(name, func(t *testing.T) {
			f := image.LocalFile{Path: file(t, c.content)}
			for range 2 { // the second answer is a former one
				is, length, err := f.Judge(t.Context())
				if c.want != "" {
					refused(t, err, c.want)
					if strings.Count(err.Error(), f.Path) != 1 {
						t.Errorf("the file is not named once: %v", err)
					}
				} else if err != nil || length != c.length || is.Format != "raw" {
					t.Errorf("it is judged as %+v of %d bytes, %v", is, length, err)
				}
			}
		})
	}
}

// A qcow2 image that lacks its end is refused, and a verdict holds until the file changes.
func TestLocalFile_JudgeChanged(t *testing.T) {
	whole := converted(t, "compat=1.1")
	f := image.LocalFile{Path: file(t, whole[:len(whole)-64<<10])}
	if _, _, err := f.Judge(t.Context()); !errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), "It is cut off") {
		t.Errorf("it is judged with %v", err)
	}
	if err := os.WriteFile(f.Path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if is, length, err := f.Judge(t.Context()); err != nil || is.Format != "qcow2" || length != int64(len(whole)) {
		t.Errorf("it is judged as %+v of %d bytes, %v", is, length, err)
	}
}

func TestLocalFile_Head(t *testing.T) {
	raw := disk(300_000)
	for name, c := range map[string]struct {
		content []byte
		length  int64
	}{"raw": {raw, 300_000}, "packed": {gzipped(t, raw), 0}} {
		is, length, err := image.LocalFile{Path: file(t, c.content)}.Head(t.Context())
		if err != nil || length != c.length || is.Format != "raw" {
			t.Errorf("%s: %+v of %d bytes, %v", name, is, length, err)
		}
	}
}
