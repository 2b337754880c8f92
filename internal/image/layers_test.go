package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// layer is an archive of files: "path=content"; one that ends in a slash is a folder, one with -> a link.
func layer(t *testing.T, reads *int, files ...string) image.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		h := tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if from, to, ok := strings.Cut(name, "->"); ok {
			h.Name, h.Linkname, h.Typeflag = from, to, tar.TypeSymlink
		}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return func() (io.ReadCloser, error) {
		*reads++
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}
}

func TestFindDisk(t *testing.T) {
	type layers [][]string
	for name, c := range map[string]struct {
		layers layers
		path   string
		want   string
		refuse string
		unread int // layers that are not looked at
	}{
		"one file":                          {layers: layers{{"disk/", "disk/img=one"}}, want: "one"},
		"one file with another name form":   {layers: layers{{"./disk/img=one"}}, want: "one"},
		"one file with an absolute name":    {layers: layers{{"/disk/img=one"}}, want: "one"},
		"beside a system":                   {layers: layers{{"etc/passwd=x", "bin/sh->busybox"}, {"disk/img=one"}}, want: "one"},
		"below other layers":                {layers: layers{{"disk/img=one"}, {"etc/passwd=x"}}, want: "one"},
		"the later one":                     {layers: layers{{"disk/img=old"}, {"disk/img=new"}}, want: "new"},
		"the later one after a removal":     {layers: layers{{"disk/a=old"}, {"disk/.wh.a=", "disk/b=new"}}, want: "new"},
		"the later one in an opaque":        {layers: layers{{"disk/a=old"}, {"disk/.wh..wh..opq=", "disk/b=new"}}, want: "new", unread: 1},
		"the later one in a new folder":     {layers: layers{{"disk/a=old"}, {".wh.disk=", "disk/b=new"}}, want: "new", unread: 1},
		"made again after a removal":        {layers: layers{{"disk/a=old"}, {"disk/.wh.a="}, {"disk/a=new"}}, want: "new"},
		"in a folder below":                 {layers: layers{{"disk/deep/img=one"}}, want: "one"},
		"a path":                            {layers: layers{{"disk/a=one", "images/b=two"}}, path: "/images/b", want: "two"},
		"a path that a later layer has":     {layers: layers{{"x=old"}, {"x=new"}}, path: "x", want: "new", unread: 1},
		"none":                              {layers: layers{{"etc/passwd=x"}}, refuse: "there is no file below /disk in it"},
		"an empty folder":                   {layers: layers{{"disk/"}}, refuse: "there is no file below /disk in it"},
		"removed":                           {layers: layers{{"disk/img=one"}, {"disk/.wh.img="}}, refuse: "there is no file below /disk"},
		"a path that is not there":          {layers: layers{{"disk/img=one"}}, path: "disk/other", refuse: "there is no file /disk/other"},
		"two":                               {layers: layers{{"disk/a=1", "disk/b=2"}}, refuse: "it has /disk/a and /disk/b"},
		"two in two layers":                 {layers: layers{{"disk/a=1"}, {"disk/b=2"}}, refuse: "it has /disk/b and /disk/a"},
		"a link":                            {layers: layers{{"disk/img->/etc/shadow"}}, refuse: "/disk/img is not a plain file"},
		"a file where the folder should be": {layers: layers{{"disk/img=1"}, {"disk=x"}}, refuse: "there is no file below /disk"},
		"out of the image":                  {layers: layers{{"disk/../../etc/passwd=x"}}, refuse: "leads out of it"},
		"a path out of the image":           {layers: layers{{"etc/passwd=x"}}, path: "../../etc/shadow", refuse: "there is no file /etc/shadow"},
	} {
		t.Run(name, func(t *testing.T) {
			reads, got := 0, ""
			var all []image.Layer
			for _, files := range c.layers {
				all = append(all, layer(t, &reads, files...))
			}
			err := image.FindDisk(all, c.path, func(f image.File) error {
				content, err := io.ReadAll(f)
				got = string(content)
				if int64(len(content)) != f.Size {
					return fmt.Errorf("%d bytes of %d", len(content), f.Size)
				}
				return err
			})
			if c.refuse == "" && (err != nil || got != c.want || reads != len(all)-c.unread) {
				t.Errorf("got %q after %d layers, %v", got, reads, err)
			}
			if c.refuse != "" && (!errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), c.refuse)) {
				t.Errorf("got %q, %v; want %q", got, err, c.refuse)
			}
		})
	}
}

func TestALayerThatIsNoArchive(t *testing.T) {
	garbage := func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(slices.Repeat([]byte("garbage "), 200))), nil
	}
	if err := image.FindDisk([]image.Layer{garbage}, "", func(image.File) error { return nil }); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("got %v", err)
	}
}
