package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// layer returns an archive of files: "path=content"; with a trailing slash it is a folder, with -> a link.
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
		unread int // layers that are not read
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
		"the later one in an opaque root":   {layers: layers{{"disk/a=old"}, {".wh..wh..opq=", "disk/b=new"}}, want: "new", unread: 1},
		"beside a removal of another":       {layers: layers{{"disk/img=one"}, {"etc/.wh.passwd=", "disks/.wh.img="}}, want: "one"},
		"a folder that a path is in":        {layers: layers{{"a/b/c=old"}, {"a/.wh.b="}}, path: "a/b/c", refuse: "there is no file /a/b/c", unread: 1},
		"made again after a removal":        {layers: layers{{"disk/a=old"}, {"disk/.wh.a="}, {"disk/a=new"}}, want: "new"},
		"in a folder below":                 {layers: layers{{"disk/deep/img=one"}}, want: "one"},
		"a path":                            {layers: layers{{"disk/a=one", "images/b=two"}}, path: "/images/b", want: "two"},
		"a path without a slash":            {layers: layers{{"/disk/a=one", "./disk/b=two"}}, path: "disk/b", want: "two"},
		"a path that a later layer has":     {layers: layers{{"x=old"}, {"x=new"}}, path: "x", want: "new", unread: 1},
		"none":                              {layers: layers{{"etc/passwd=x"}}, refuse: "there is no file below /disk in it"},
		"an empty folder":                   {layers: layers{{"disk/"}}, refuse: "there is no file below /disk in it"},
		"removed":                           {layers: layers{{"disk/img=one"}, {"disk/.wh.img="}}, refuse: "there is no file below /disk"},
		"a path that is not there":          {layers: layers{{"disk/img=one"}}, path: "disk/other", refuse: "there is no file /disk/other"},
		"two":                               {layers: layers{{"disk/a=1", "disk/b=2"}}, refuse: `it has "/disk/a" and "/disk/b"`},
		"two in two layers":                 {layers: layers{{"disk/a=1"}, {"disk/b=2"}}, refuse: `it has "/disk/b" and "/disk/a"`},
		"a link":                            {layers: layers{{"disk/img->/etc/shadow"}}, refuse: `"/disk/img" is not a plain file`},
		"a file where the folder should be": {layers: layers{{"disk/img=1"}, {"disk=x"}}, refuse: "there is no file below /disk"},
		"removed with all":                  {layers: layers{{"disk/img=one"}, {".wh..wh..opq="}}, refuse: "there is no file below /disk"},
		"the removal of nothing":            {layers: layers{{"disk/img=one", "disk/.wh.="}}, refuse: "removes a file without a name"},
		"the removal of the folder above":   {layers: layers{{"disk/img=one", "disk/.wh...="}}, refuse: "removes a file without a name"},
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

// GNU tar -S writes the holes of an image as a map.
func TestFindDisk_GNUSparse(t *testing.T) {
	want := make([]byte, 4<<20)
	copy(want, "begin")
	copy(want[3<<20:], "end")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "disk"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "disk", "img"))
	if err == nil {
		_, err = f.WriteAt(want[:4096], 0)
	}
	if err == nil {
		_, err = f.WriteAt(want[3<<20:3<<20+4096], 3<<20)
	}
	if err = errors.Join(err, f.Truncate(int64(len(want))), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"gnu", "posix"} {
		archive, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-c", "-S", "--format="+format, "disk").Output()
		if err != nil {
			t.Fatal(err)
		}
		if len(archive) > len(want)/2 {
			t.Fatalf("%s: the archive has %d bytes, so it is not sparse", format, len(archive))
		}
		var got []byte
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
		err = image.FindDisk([]image.Layer{open}, "", func(f image.File) (err error) {
			got, err = io.ReadAll(f)
			if f.Size != int64(len(want)) {
				t.Errorf("%s: the size is %d", format, f.Size)
			}
			return err
		})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", format, len(got), err)
		}
	}
}

func TestFindDisk_LayerIsNoArchive(t *testing.T) {
	garbage := func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(slices.Repeat([]byte("garbage "), 200))), nil
	}
	if err := image.FindDisk([]image.Layer{garbage}, "", func(image.File) error { return nil }); !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("got %v", err)
	}
}

func TestFindDisk_UnreadableLayer(t *testing.T) {
	broken := errors.New("the connection broke")
	var reads int
	whole, err := layer(t, &reads, "disk/img="+strings.Repeat("x", 5000))()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		layer     io.Reader
		want      string
		untrusted bool
	}{
		"in an entry":         {io.MultiReader(bytes.NewReader(content[:2000]), iotest.ErrReader(broken)), broken.Error(), false},
		"in a header":         {io.MultiReader(bytes.NewReader(content[:100]), iotest.ErrReader(broken)), broken.Error(), false},
		"at the end":          {io.MultiReader(bytes.NewReader(content), iotest.ErrReader(broken)), broken.Error(), false},
		"cut off in an entry": {bytes.NewReader(content[:2000]), "a layer ends in the middle of the file", true},
		"cut off in a header": {bytes.NewReader(content[:100]), "a layer is no tar archive", true},
		"with a long tail":    {io.MultiReader(bytes.NewReader(content), bytes.NewReader(make([]byte, 2<<20))), "goes on for more than", true},
	} {
		t.Run(name, func(t *testing.T) {
			open := func() (io.ReadCloser, error) { return io.NopCloser(c.layer), nil }
			err := image.FindDisk([]image.Layer{open}, "", func(f image.File) error {
				_, err := io.Copy(io.Discard, f)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, image.ErrUntrusted) != c.untrusted {
				t.Errorf("got %v", err)
			}
		})
	}
}

// archiveOf returns one entry of an archive, without the archive's end.
func archiveOf(t *testing.T, h tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	h.Mode = 0o644
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// A layer with nothing but names must not fill the memory with them.
func TestFindDisk_RefusesInvalidNames(t *testing.T) {
	megabyte := strings.Repeat("x", 1<<20-100)
	for name, c := range map[string]struct {
		entry func(n int) tar.Header
		want  string
		most  int
	}{
		"long names":           {func(int) tar.Header { return tar.Header{Name: "disk/" + megabyte} }, "a name of 1048481 bytes", 2 << 20},
		"long names elsewhere": {func(int) tar.Header { return tar.Header{Name: "etc/" + megabyte} }, "a name of 1048480 bytes", 2 << 20},
		"long links": {func(int) tar.Header {
			return tar.Header{Name: "disk/.wh.x", Typeflag: tar.TypeSymlink, Linkname: megabyte}
		}, "a name of 1048476 bytes", 2 << 20},
		"many names that Linux takes": {func(n int) tar.Header {
			return tar.Header{Name: fmt.Sprintf("disk/.wh.%s%d", megabyte[:4000], n)}
		}, "or longer ones than 4194304 bytes together", 10 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var all []io.Reader
			for n := range 1200 {
				if n == 0 || c.most > 2<<20 {
					all = append(all, bytes.NewReader(archiveOf(t, c.entry(n))))
				} else {
					all = append(all, bytes.NewReader(archiveOf(t, tar.Header{Name: "etc/passwd"})))
				}
			}
			in := &counted{Reader: io.MultiReader(all...)}
			open := func() (io.ReadCloser, error) { return io.NopCloser(in), nil }
			err := image.FindDisk([]image.Layer{open}, "", func(image.File) error { return nil })
			if refused(t, err, c.want); in.n > c.most {
				t.Errorf("it was refused after %d bytes", in.n)
			}
		})
	}
}

func FuzzFindDisk(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "disk/img", Size: 3, Mode: 0o644})
	_, _ = io.WriteString(w, "abc")
	_ = w.Close()
	f.Add(b.Bytes(), b.Bytes(), "")
	f.Add(b.Bytes(), []byte("garbage"), "disk/img")
	f.Fuzz(func(t *testing.T, lower, upper []byte, at string) {
		open := func(content []byte) image.Layer {
			return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		}
		taken := 0
		err := image.FindDisk([]image.Layer{open(lower), open(upper)}, at, func(f image.File) error {
			taken++
			if f.Size > 1<<20 {
				return image.ErrUntrusted // a sparse file of a few bytes can have any size
			}
			n, err := io.Copy(io.Discard, f)
			if err == nil && n != f.Size {
				t.Errorf("%d bytes of %d", n, f.Size)
			}
			return err
		})
		if taken > 1 || err == nil && taken == 0 || err != nil && !errors.Is(err, image.ErrUntrusted) {
			t.Errorf("it took %d, %v", taken, err)
		}
	})
}
