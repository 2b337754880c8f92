package rootfs_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// archive is a layer of entries. A regular file has its size in zeros.
func archive(t testing.TB, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		h.Format = tar.FormatPAX
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// made is the image of a layer.
func made(t testing.TB, f *rootfs.FileSystem, layer io.Reader, backing string) []byte {
	t.Helper()
	image := bytes.NewBuffer(make([]byte, rootfs.HeadSize))
	head, err := f.Apply(layer, image, backing)
	if err != nil {
		t.Fatal(err)
	}
	copy(image.Bytes(), head)
	return image.Bytes()
}

func dir(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755} }

func link(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
}

func withAttributes(all map[string]string) tar.Header {
	h := tar.Header{Name: "file", PAXRecords: map[string]string{}}
	for name, value := range all {
		h.PAXRecords["SCHILY.xattr."+name] = value
	}
	return h
}

// What can't be represented, or is not allowed, is an error that names the entry.
func TestApply_Refuses(t *testing.T) {
	deep := strings.Repeat("d/", 300)
	var nested []tar.Header // each link leads to the one before, twice
	nested = append(nested, dir("l0"))
	for n := range 60 {
		nested = append(nested, symlink(fmt.Sprint("l", n+1), fmt.Sprint("l", n)))
	}
	for name, test := range map[string]struct {
		entries []tar.Header
		want    string
	}{
		"leaves the root":                 {[]tar.Header{{Name: "../file"}}, `"../file": its path has a ".."`},
		"leaves the root within":          {[]tar.Header{{Name: "a/../../file"}}, `could leave the root`},
		"through a symbolic link":         {[]tar.Header{symlink("out", "../.."), {Name: "out/file"}}, `"out/file": a symbolic link in its path leaves the root`},
		"hard link to outside":            {[]tar.Header{link("a", "../etc/shadow")}, `"a": hard link to "../etc/shadow"`},
		"hard link through a link":        {[]tar.Header{symlink("out", ".."), link("a", "out/b")}, `leaves the root`},
		"hard link to nothing":            {[]tar.Header{link("a", "b")}, `"a": hard link to "b", which is not there`},
		"hard link to a directory":        {[]tar.Header{dir("b"), link("a", "b")}, `is a directory`},
		"hard link to itself":             {[]tar.Header{link("a", "a")}, `is not there`},
		"a loop of links":                 {[]tar.Header{symlink("a", "b"), symlink("b", "a"), {Name: "a/file"}}, `more than 40 symbolic links`},
		"a long way of links":             {append(nested, tar.Header{Name: "l60/file"}), `more than 40 symbolic links`},
		"a file as a directory":           {[]tar.Header{{Name: "a"}, {Name: "a/b"}}, `"a/b": "a" in its path is not a directory`},
		"twice":                           {[]tar.Header{{Name: "a"}, {Name: "./a"}}, `the layer has it twice`},
		"twice, of other types":           {[]tar.Header{{Name: "a"}, dir("a/")}, `the layer has it twice`},
		"a parent after its children":     {[]tar.Header{{Name: "a/b"}, {Name: "a"}}, `the layer has it twice`},
		"the root as a file":              {[]tar.Header{{Name: "."}}, `the root is not a directory`},
		"too deep":                        {[]tar.Header{{Name: deep + "file"}}, `more than 255 directories`},
		"a path too long":                 {[]tar.Header{{Name: strings.Repeat(strings.Repeat("n", 200)+"/", 21) + "a"}}, `more than 4095 bytes`},
		"a name too long":                 {[]tar.Header{{Name: strings.Repeat("n", 256)}}, `more than 255 bytes`},
		"a target too long":               {[]tar.Header{symlink("a", strings.Repeat("t", 4096))}, `a target of 4096 bytes`},
		"a target without a byte":         {[]tar.Header{symlink("a", "")}, `a target of 0 bytes`},
		"an owner beyond its range":       {[]tar.Header{{Name: "a", Uid: math.MaxUint32}}, `no number of a user`},
		"a negative group":                {[]tar.Header{{Name: "a", Gid: -1}}, `no number of a user`},
		"a time beyond its range":         {[]tar.Header{{Name: "a", ModTime: time.Unix(1<<34, 0)}}, `can't be represented`},
		"a time before":                   {[]tar.Header{{Name: "a", ModTime: time.Unix(-1<<32, 0)}}, `can't be represented`},
		"a device beyond its range":       {[]tar.Header{{Name: "a", Typeflag: tar.TypeChar, Devmajor: 4096}}, `no device 4096:0`},
		"an entry of another type":        {[]tar.Header{{Name: "a", Typeflag: tar.TypeCont}}, `type '7'`},
		"a whiteout of nothing":           {[]tar.Header{dir("a"), {Name: "a/.wh."}}, `no such whiteouts`},
		"a whiteout of the folder itself": {[]tar.Header{dir("a"), {Name: "a/.wh.."}}, `no such whiteouts`},
		"a whiteout of the parent":        {[]tar.Header{dir("a"), {Name: "a/.wh..."}}, `no such whiteouts`},
		"a hard link to AUFS's files":     {[]tar.Header{{Name: ".wh..wh.plnk/1.2"}, link("a", ".wh..wh.plnk/1.2")}, `hard link to ".wh..wh.plnk/1.2", which is not there`},
		"attributes too large":            {[]tar.Header{withAttributes(map[string]string{"user.a": strings.Repeat("v", 4096)})}, `more than 4096 bytes`},
		"attributes of no namespace":      {[]tar.Header{withAttributes(map[string]string{"com.example.a": "v"})}, `"com.example.a" can't be represented`},
		"an ACL":                          {[]tar.Header{withAttributes(map[string]string{"system.posix_acl_access": "v"})}, `can't be represented`},
		"an attribute without a name":     {[]tar.Header{withAttributes(map[string]string{"user.": "v"})}, `can't be represented`},
		"attributes of bsdtar":            {[]tar.Header{{Name: "a", PAXRecords: map[string]string{"LIBARCHIVE.xattr.user.a": "dg"}}}, `not supported`},
		"records of another program":      {[]tar.Header{{Name: "a", PAXRecords: map[string]string{"SCHILY.acl.access": "v"}}}, `"SCHILY.acl.access" is not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			f := rootfs.New([16]byte{})
			_, err := f.Apply(archive(t, test.entries...), io.Discard, "")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("the error is %v, and should contain %s", err, test.want)
			}
			if _, again := f.Apply(archive(t), io.Discard, "below"); again == nil {
				t.Error("a file system with half a layer takes another one")
			}
		})
	}
}

// Container engines leave out what AUFS and macOS have put into a layer, and so the image is that of a layer without it.
func TestApply_Skips(t *testing.T) {
	fromMac := withAttributes(map[string]string{"com.apple.provenance": "v", "user.note": "n"})
	fromMac.PAXRecords["LIBARCHIVE.xattr.com.apple.provenance"] = "dg"
	with := []tar.Header{
		{Name: ".wh..wh.aufs"},
		dir(".wh..wh.orph/"), dir("./.wh..wh.plnk"),
		{Name: ".wh..wh.plnk/1.2", Size: 5},
		{Name: "a/.wh..wh.other"},
		{Name: "a/.wh..wh..opq"},
		{Name: "a/b", Size: 3},
		fromMac,
	}
	without := []tar.Header{{Name: "a/.wh..wh..opq"}, {Name: "a/b", Size: 3}, withAttributes(map[string]string{"user.note": "n"})}
	f, plain := rootfs.New([16]byte{}), rootfs.New([16]byte{})
	if !bytes.Equal(made(t, f, archive(t, with...), ""), made(t, plain, archive(t, without...), "")) {
		t.Error("what is left out changes the image")
	}
	if f.Skipped() != 7 || plain.Skipped() != 0 {
		t.Errorf("%d and %d were left out", f.Skipped(), plain.Skipped())
	}
	if made(t, f, archive(t), "below"); f.Skipped() != 0 {
		t.Errorf("of an empty layer %d were left out", f.Skipped())
	}
}

// endless is a reader of zeros behind a header.
func endless(t *testing.T, h tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	return io.MultiReader(&b, zeros{})
}

// repeated is a layer of one header, again and again.
func repeated(t *testing.T, h tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat(b.Bytes(), 1<<10)
	var all []io.Reader
	for range 2 << 10 {
		all = append(all, bytes.NewReader(text))
	}
	return io.MultiReader(all...)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Layers that are too large are refused before all of them is read.
func TestApply_RefusesBombs(t *testing.T) {
	many := func(n int, entry func(n int) tar.Header) io.Reader {
		r, w := io.Pipe()
		go func() {
			buffered := bufio.NewWriterSize(w, 1<<20)
			out := tar.NewWriter(buffered)
			for i := range n {
				h := entry(i)
				h.Typeflag, h.Format = max(h.Typeflag, tar.TypeReg), tar.FormatPAX
				if out.WriteHeader(&h) != nil {
					return
				}
			}
			_ = w.CloseWithError(errors.Join(out.Close(), buffered.Flush()))
		}()
		t.Cleanup(func() { _ = r.Close() })
		return bufio.NewReaderSize(r, 1<<20)
	}
	for name, test := range map[string]struct {
		layer io.Reader
		want  string
	}{
		"a file":    {endless(t, tar.Header{Name: "big", Size: 1 << 40, Typeflag: tar.TypeReg}), `"big": the files of the image have no room in 16 GiB`},
		"two files": {endless(t, tar.Header{Name: "big", Size: rootfs.Size - 1, Typeflag: tar.TypeReg}), `no room`},
		"entries":   {repeated(t, tar.Header{Name: ".wh.a", Typeflag: tar.TypeReg}), `more than 1048576 entries`},
		"names":     {many(20_000, func(n int) tar.Header { return symlink(fmt.Sprint(n), strings.Repeat("t", 4000)) }), `more than 64 MiB`},
		"hard links": {many(70_000, func(n int) tar.Header {
			if n == 0 {
				return tar.Header{Name: "a"}
			}
			return link(fmt.Sprint(n), "a")
		}), `more than 65000 hard links`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rootfs.New([16]byte{}).Apply(test.layer, io.Discard, "")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("the error is %v, and should contain %s", err, test.want)
			}
		})
	}
}

// layers are those of an image that changes files of each type.
func layers(t testing.TB) []*bytes.Buffer {
	t.Helper()
	capability := withAttributes(map[string]string{"security.capability": "\x01\x00\x00\x02", "user.note": "n", "trusted.t": ""})
	var many, without []tar.Header
	for n := range 3000 {
		name := fmt.Sprintf("many/%0100d", n)
		many = append(many, tar.Header{Name: name, Mode: 0o4755, Size: int64(n), Uid: 70_000, ModTime: time.Unix(-1, 5)})
		if n%2 == 0 {
			without = append(without, tar.Header{Name: strings.Replace(name, "/", "/.wh.", 1)})
		}
	}
	return []*bytes.Buffer{
		archive(t, append(many, capability, symlink("bin", "usr/bin"), tar.Header{Name: "usr/bin/a", Size: 200_000}, link("hard", "bin/a"),
			tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, tar.Header{Name: "wide", Typeflag: tar.TypeBlock, Devmajor: 300, Devminor: 70_000},
			tar.Header{Name: "fifo", Typeflag: tar.TypeFifo}, symlink("long", strings.Repeat("t", 900)), dir("./"))...),
		archive(t, append(without, tar.Header{Name: "bin/b", Size: 3}, tar.Header{Name: ".wh.file"}, link("usr/hard", "hard"))...),
		archive(t, tar.Header{Name: "many/.wh..wh..opq"}, tar.Header{Name: "many/new"}, dir("bin"), tar.Header{Name: "bin/c"}, tar.Header{Name: ".wh.usr"}),
		archive(t, tar.Header{Name: "d/e/f", Size: 70_000}),
	}
}

// wantSum is the SHA-256 of all images of layers.
const wantSum = "eb281d6d5469d6328f620b0ea383e7978115d523b9234097de4d50739632bae4"

// The same layers become the same images, whether the file system goes on or is opened for each layer.
func TestApply_SameBytes(t *testing.T) {
	id := [16]byte{5, 6, 7}
	once, all := rootfs.New(id), layers(t)
	var images []io.ReaderAt
	backing := ""
	for n, layer := range all {
		opened, err := rootfs.Open(id, images)
		if err != nil {
			t.Fatal(err)
		}
		text := layer.Bytes()
		want := made(t, once, bytes.NewReader(text), backing)
		if got := made(t, opened, bytes.NewReader(text), backing); !bytes.Equal(got, want) {
			t.Fatalf("layer %d is another image when those below are opened", n+1)
		}
		images = append(images, bytes.NewReader(want))
		backing = fmt.Sprint("layer-", n+1)
	}
	sum := sha256.New()
	for _, i := range images {
		if _, err := io.Copy(sum, i.(io.Reader)); err != nil {
			t.Fatal(err)
		}
	}
	if sum := fmt.Sprintf("%x", sum.Sum(nil)); sum != wantSum {
		t.Errorf("the images have become others: their digest is %s. Then all hosts have images that are not shared any more: change this if it must be", sum)
	}
}

// A disk to which all layers are applied is, to the byte, what the images of the layers are together, and sound.
func TestApplyTo_LikeImages(t *testing.T) {
	layers := []*bytes.Buffer{
		archive(t, dir("d"), tar.Header{Name: "d/a", Size: 100}, tar.Header{Name: "d/gone", Size: 70000}, link("d/b", "d/a"), symlink("s", "d")),
		archive(t, tar.Header{Name: "d/.wh.gone"}, tar.Header{Name: "d/c", Size: 200000}, symlink("long", strings.Repeat("t", 80))),
		archive(t, dir("e"), tar.Header{Name: "e/.wh..wh..opq"}, tar.Header{Name: "e/f", Size: 5}, tar.Header{Name: ".wh.s"}),
	}
	want, got := written{}, written{}
	one, other, backing := rootfs.New([16]byte{1}), rootfs.New([16]byte{1}), ""
	for _, layer := range layers {
		flattenTo(t, made(t, one, bytes.NewReader(layer.Bytes()), backing), want)
		backing = "below"
		if err := other.ApplyTo(bytes.NewReader(layer.Bytes()), got); err != nil {
			t.Fatal(err)
		}
	}
	for at, cluster := range want {
		if !bytes.Equal(cluster, got[at]) && (got[at] != nil || !bytes.Equal(cluster, make([]byte, len(cluster)))) {
			t.Errorf("the %d bytes at %d differ", len(cluster), at)
		}
	}
	if len(got) > len(want) {
		t.Errorf("%d clusters were written, and %d are enough", len(got), len(want))
	}
	disk := filepath.Join(t.TempDir(), "disk")
	if out, err := got.check(t, disk); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := other.ApplyTo(strings.NewReader("no archive"), got); err == nil {
		t.Error("a layer that is none was applied")
	}
	if err := other.ApplyTo(bytes.NewReader(layers[0].Bytes()), got); err == nil {
		t.Error("a file system that is not complete got another layer")
	}
}

// written is what a disk has at which places.
type written map[int64][]byte

func (w written) WriteAt(p []byte, at int64) (int, error) {
	w[at] = bytes.Clone(p)
	return len(p), nil
}

// check is e2fsck for the disk, if there is one.
func (w written) check(t *testing.T, path string) (out []byte, err error) {
	t.Helper()
	file, err := os.Create(path)
	for at, p := range w {
		if err == nil {
			_, err = file.WriteAt(p, at)
		}
	}
	if err = errors.Join(err, file.Truncate(rootfs.Size), file.Close()); err != nil {
		return nil, err
	}
	check, _ := exec.LookPath("e2fsck")
	if check == "" { // as the other tests of this package without one
		return nil, nil
	}
	return exec.CommandContext(t.Context(), check, "-fn", path).CombinedOutput()
}
