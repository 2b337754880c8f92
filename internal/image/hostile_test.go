package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// refused checks that an error has the reason, is ErrUntrusted, and contains no secret.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, image.ErrUntrusted) {
		t.Errorf("got %v, want %q", err, want)
	}
	hidesSecrets(t, err)
}

func hidesSecrets(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{"hunter2", "aHVudGVyMg", "s3cr3t", "bWU6aHVudGVyMg"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s is in the error %v", secret, err)
		}
	}
}

// fixedVHD is a raw disk with the footer of a fixed VHD, at the end of its last sector.
func fixedVHD(raw []byte) []byte {
	footer := make([]byte, 512)
	copy(footer, "conectix")
	footer[63] = 2
	return slices.Concat(raw, make([]byte, (512-len(raw)%512)%512), footer)
}

var lfsPointer = []byte("version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("ab", 32) + "\nsize 2361393152\n")

// Hostile files are refused in the same way from a web server and from a local disk.
func TestFile_Hostile(t *testing.T) {
	const limit = 1 << 20
	good, bomb := disk(5000), make([]byte, 4<<20)
	twice := disk(5000)
	copy(twice, "\x1f\x8b")
	skipped := append([]byte("\x50\x2a\x4d\x18\xff\xff\xff\xff"), good...)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":                       {nil, "it is empty"},
		"gzip of nothing":             {gzipped(t, nil), "it is empty"},
		"a bomb":                      {bomb, "it has more than 1048576 bytes, the most that is read for a volume of this size"},
		"a fixed VHD":                 {fixedVHD(good), "a fixed VHD, as of Hyper-V and Azure"},
		"a fixed VHD in gzip":         {gzipped(t, fixedVHD(good)), "qemu-img convert -f vpc -O qcow2"},
		"a bomb in gzip":              {gzipped(t, bomb), "it has more than 1048576 bytes"},
		"a bomb in xz":                {xzed(bomb, dictionary1MiB), "it has more than 1048576 bytes"},
		"a bomb in zstd":              {zstandard(t, bomb), "it has more than 1048576 bytes"},
		"a bomb in parts":             {slices.Concat(gzipped(t, bomb[:limit]), gzipped(t, bomb[:1])), "it has more than 1048576 bytes"},
		"a large dictionary in xz":    {xzed(good, dictionary96MiB), "an xz dictionary of more than 64 MiB"},
		"an absurd dictionary in xz":  {xzed(good, dictionary4GiB), "an xz dictionary of more than 64 MiB"},
		"a large second dictionary":   {slices.Concat(xzed(good, dictionary1MiB), xzed(good, dictionary4GiB)), "an xz dictionary of more than 64 MiB"},
		"a large window in zstd":      {zstandard(t, bomb[:limit], zstd.WithWindowSize(256<<20), zstd.WithSingleSegment(false)), "a zstd window of more than 128 MiB"},
		"gzip that is cut off":        {gzipped(t, good)[:2000], "its gzip archive is cut off"},
		"gzip without its end":        {gzipped(t, good)[:len(gzipped(t, good))-3], "its gzip archive is cut off"},
		"only a magic of gzip":        {[]byte("\x1f\x8b"), "its gzip archive is cut off"},
		"xz that is cut off":          {xzed(good, dictionary1MiB)[:2000], "its xz archive is broken"},
		"xz without its end":          {xzed(good, dictionary1MiB)[:len(xzed(good, dictionary1MiB))-4], "its xz archive is broken"},
		"zstd that is cut off":        {zstandard(t, good)[:len(zstandard(t, good))-3], "its zstd archive is cut off"},
		"a frame to skip of 4 GiB":    {skipped, "its zstd archive is cut off"},
		"gzip with garbage behind":    {append(gzipped(t, good), "garbage after the end"...), "or something follows it"},
		"xz with garbage behind":      {append(xzed(good, dictionary1MiB), "garbage after the end"...), "or something follows it"},
		"zstd with garbage behind":    {append(zstandard(t, good), "garbage after the end"...), "or something follows it"},
		"gzip with a wrong checksum":  {flip(gzipped(t, good), -6), "its gzip archive is broken"},
		"zstd with a wrong checksum":  {flip(zstandard(t, good), -2), "its zstd archive is broken"},
		"xz with a wrong checksum":    {flip(xzed(good, dictionary1MiB), 500), "its xz archive is broken"},
		"packed twice":                {gzipped(t, gzipped(t, good)), "it is packed twice, inside with gzip"},
		"packed in two ways":          {xzed(zstandard(t, good), dictionary1MiB), "it is packed twice, inside with zstd"},
		"what looks packed twice":     {zstandard(t, twice), "it is packed twice"},
		"a tar archive":               {tarred(t, plain("disk.img", good)), "it is a tar archive"},
		"a tar archive in gzip":       {gzipped(t, tarred(t, plain("disk.img", good))), "it is a tar archive"},
		"a zip archive":               {[]byte("PK\x03\x04 and more"), "it is a zip archive"},
		"a 7z archive":                {[]byte("7z\xbc\xaf\x27\x1c and more"), "it is a 7z archive"},
		"bzip2":                       {[]byte("BZh91AY&SY"), "it is packed with bzip2"},
		"a web page":                  {[]byte("\n<!DOCTYPE html><title>Log in</title>"), "the server answered with a web page"},
		"a web page without its type": {[]byte("\xef\xbb\xbf<HTML><body>"), "the server answered with a web page"},
		"a pointer of Git LFS":        {lfsPointer, "it is a pointer of Git LFS, not the file that it stands for. Get that (git lfs pull)"},
		"less than a sector":          {[]byte("404 page not found"), "it has 18 bytes, and a disk has at least a sector of 512"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readAll(image.LocalFile{Path: file(t, c.content), Limit: limit}.Open(t.Context()))
			refused(t, err, c.want)
			url := serve(t, &server{content: c.content}).URL + "/image?signature=s3cr3t"
			_, err = readAll(image.URL{URL: url, Checksum: sha(c.content), Limit: limit}.Open(t.Context()))
			refused(t, err, c.want)
			// The content is also refused in a container image.
			f := &fake{}
			f.push(nil, tarred(t, plain("disk/d", c.content)))
			_, err = pull(t, image.Container{Reference: at(t, f), Limit: limit})
			if len(c.content) > limit {
				c.want = "and at most 1048576 are read for a volume of this size"
			}
			refused(t, err, c.want)
		})
	}
}

// flip changes a byte; a negative position counts from the end.
func flip(content []byte, at int) []byte {
	content = bytes.Clone(content)
	if at < 0 {
		at += len(content)
	}
	content[at] ^= 0x55
	return content
}

func TestFile_Changed(t *testing.T) {
	want := disk(5000)
	for packing, content := range map[string][]byte{"raw": want, "gzip": gzipped(t, want), "zstd": zstandard(t, want), "xz": xzed(want, dictionary1MiB)} {
		t.Run(packing, func(t *testing.T) {
			_, err := readAll(image.LocalFile{Path: file(t, content), Digest: sha(nil)}.Open(t.Context()))
			refused(t, err, "it changed since it was planned")
			url := serve(t, &server{content: content}).URL
			_, err = readAll(image.URL{URL: url, Checksum: sha(nil)}.Open(t.Context()))
			refused(t, err, "its checksum is "+sha(content)+", and not "+sha(nil))
		})
	}
}

func TestURL_Hostile(t *testing.T) {
	digits := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		url  image.URL
		want string
	}{
		"a user":              {image.URL{URL: "https://me:hunter2@example.org/i"}, "there is a user name in the URL"},
		"a user without more": {image.URL{URL: "https://hunter2@example.org/i"}, "there is a user name in the URL"},
		"ftp":                 {image.URL{URL: "ftp://example.org/i?s3cr3t"}, `the scheme is "ftp"`},
		"a file":              {image.URL{URL: "file:///etc/shadow"}, `the scheme is "file"`},
		"no scheme":           {image.URL{URL: "example.org/i"}, `the scheme is ""`},
		"no host":             {image.URL{URL: "https:///i"}, "there is no host"},
		"no URL":              {image.URL{URL: "https://me:hunter2@exa mple\x7f/"}, "it is no URL"},
		"md5":                 {image.URL{URL: "https://example.org", Checksum: "md5:" + digits[:32]}, "the checksum is of md5, which is broken"},
		"sha1":                {image.URL{URL: "https://example.org", Checksum: "sha1:" + digits[:40]}, "the checksum is of sha1, which is broken"},
		"crc32":               {image.URL{URL: "https://example.org", Checksum: "crc32:0"}, `algorithm "crc32" is unknown`},
		"no algorithm":        {image.URL{URL: "https://example.org", Checksum: digits}, "names no algorithm"},
		"too few digits":      {image.URL{URL: "https://example.org", Checksum: "sha256:" + digits[1:]}, "should have 64 hexadecimal digits"},
		"no digits":           {image.URL{URL: "https://example.org", Checksum: "sha512:" + strings.Repeat("x", 128)}, "should have 128 hexadecimal digits"},
	} {
		t.Run(name, func(t *testing.T) {
			_, opening := c.url.Open(t.Context())
			for _, err := range []error{c.url.Check(), opening} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				hidesSecrets(t, err)
			}
		})
	}
}

func TestURL_HostileServers(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(5000)
	first := func(w http.ResponseWriter) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", "5000")
		_, _ = (&cutWriter{w, 1000}).Write(want)
	}
	partial := func(contentRange, tag string, n int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", contentRange)
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusPartialContent)
			_ = http.NewResponseController(w).Flush() // without a Content-Length
			_, _ = w.Write(disk(n))
		}
	}
	whole := func(content []byte) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = w.Write(content) }
	}
	for name, c := range map[string]struct {
		second func(w http.ResponseWriter)
		want   string
	}{
		"another range":            {partial("bytes 0-4999/5000", `"v1"`, 5000), "was asked for the bytes after 1000 of 5000, and answers with the range"},
		"a range behind":           {partial("bytes 1001-4999/5000", `"v1"`, 3999), "answers with the range"},
		"a range of a longer file": {partial("bytes 1000-5000/5001", `"v1"`, 4001), "answers with the range"},
		"a range of nothing":       {partial("bytes 1000-999/5000", `"v1"`, 0), "answers with the range"},
		"no range":                 {partial("", `"v1"`, 4000), "answers with the range"},
		"a range beyond":           {partial("bytes 1000-9999/5000", `"v1"`, 4000), "answers with the range"},
		"more than the range":      {partial("bytes 1000-4999/5000", `"v1"`, 9000), "more than the 5000 bytes that it announced"},
		"another content":          {whole(disk(5008)[8:]), "it changed while it was read"},
		"a shorter content":        {whole(want[:500]), "it changed while it was read"},
		"a longer content":         {whole(disk(6000)), "sends more than the 5000 bytes that it announced"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{before: func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n == 0 {
					first(w)
				}
				c.second(w)
				return true
			}}
			_, err := readAll(image.URL{URL: serve(t, s).URL + "/?s3cr3t"}.Open(t.Context()))
			refused(t, err, c.want)
		})
	}
}

func TestURL_Redirects(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(5000)
	var referers []string
	plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		referers = append(referers, r.Referer())
		if r.URL.Path == "/loop" {
			http.Redirect(w, r, "/loop?s3cr3t", http.StatusFound)
			return
		}
		if location := r.URL.Query().Get("to"); location != "" {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
			return
		}
		_, _ = w.Write(want)
	}))
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/image?s3cr3t", http.StatusFound))
	t.Cleanup(secure.Close)
	image.Through(t, secure.Client().Transport.(*http.Transport))
	for name, c := range map[string]struct{ url, want string }{
		"good":                {plain.URL + "/?to=/image&signature=s3cr3t", ""},
		"out of encryption":   {secure.URL, "the server redirects from https to http"},
		"in a circle":         {plain.URL + "/loop", "the server redirects more than 10 times"},
		"to a file":           {plain.URL + "/?to=file:///etc/passwd", `redirects to the scheme "file"`},
		"to nowhere":          {plain.URL + "/?to=http://s3cr3t%25zz", "asking for"},
		"to a broken address": {plain.URL + "/?to=http://a%20b/%3Fs3cr3t%7f", "asking for"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(image.URL{URL: c.url}.Open(t.Context()))
			if c.want == "" && (err != nil || !bytes.Equal(got, want)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%d bytes, %v; want %q", len(got), err, c.want)
			}
			if name != "to nowhere" { // a host is not secret
				hidesSecrets(t, err)
			}
		})
	}
	if slices.ContainsFunc(referers, func(r string) bool { return r != "" }) {
		t.Errorf("it tells the next server where it comes from: %q", referers)
	}
}

func TestContainer_Hostile(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(5000)
	good := tarred(t, plain("disk/d", want))
	kind := func(flag byte) []byte {
		return tarred(t, tar.Header{Name: "disk/d", Typeflag: flag, Linkname: "/etc/shadow"})
	}
	large := bytes.Clone(good[:512+2000])
	many := func(m *v1.Manifest) {
		for range 1000 {
			m.Layers = append(m.Layers, m.Layers[0])
		}
	}
	whiteouts := make([]tar.Header, 20_000)
	for n := range whiteouts {
		whiteouts[n] = plain(fmt.Sprintf("disk/.wh.%d", n), nil)
	}
	for name, c := range map[string]struct {
		layers [][]byte
		change func(*v1.Manifest)
		path   string
		want   string
	}{
		"a path out of it":             {[][]byte{tarred(t, plain("disk/../../etc/passwd", want))}, nil, "", "leads out of it"},
		"a symbolic link":              {[][]byte{kind(tar.TypeSymlink)}, nil, "", `"/disk/d" is not a plain file`},
		"a hard link":                  {[][]byte{kind(tar.TypeLink)}, nil, "", `"/disk/d" is not a plain file`},
		"a character device":           {[][]byte{kind(tar.TypeChar)}, nil, "", `"/disk/d" is not a plain file`},
		"a block device":               {[][]byte{kind(tar.TypeBlock)}, nil, "", `"/disk/d" is not a plain file`},
		"a pipe":                       {[][]byte{kind(tar.TypeFifo)}, nil, "", `"/disk/d" is not a plain file`},
		"a path to a link":             {[][]byte{kind(tar.TypeSymlink)}, nil, "disk/d", `"/disk/d" is not a plain file`},
		"two disks":                    {[][]byte{tarred(t, plain("disk/a", want), plain("disk/b", want))}, nil, "", `it has "/disk/a" and "/disk/b"`},
		"a disk twice":                 {[][]byte{tarred(t, plain("disk/a", want), plain("disk/a", want))}, nil, "", `it has "/disk/a" and "/disk/a"`},
		"no disk":                      {[][]byte{tarred(t, plain("etc/passwd", want))}, nil, "", "there is no file below /disk"},
		"a disk that is removed":       {[][]byte{good, tarred(t, plain("disk/.wh.d", nil))}, nil, "", "there is no file below /disk"},
		"an opaque folder":             {[][]byte{good, tarred(t, plain("disk/.wh..wh..opq", nil))}, nil, "", "there is no file below /disk"},
		"many removals":                {[][]byte{tarred(t, whiteouts...)}, nil, "", "more than 10000 names"},
		"a file without its end":       {[][]byte{large}, nil, "", "ends in the middle of the file"},
		"garbage":                      {[][]byte{disk(5000)}, nil, "", "is no tar archive"},
		"a layer in bzip2":             {[][]byte{append([]byte("BZh91AY&SY"), disk(5000)...)}, nil, "", "is no tar archive"},
		"a layer that is packed twice": {[][]byte{gzipped(t, gzipped(t, good))}, nil, "", "is no tar archive"},
		"a layer that is cut off":      {[][]byte{gzipped(t, good)[:3000]}, nil, "", "its gzip archive is cut off"},
		"more after the end":           {[][]byte{append(bytes.Clone(good), make([]byte, 2<<20)...)}, nil, "", "after the end of its tar archive"},
		"more than announced":          {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].Size-- }, "", "more than the"},
		"less than announced":          {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].Size++ }, "", "only"},
		"of no bytes":                  {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].Size = 0 }, "", "layer 1 claims to have 0 bytes"},
		"of negative bytes":            {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].Size = -1 }, "", "layer 1 claims to have -1 bytes"},
		"of too many bytes":            {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].Size = 1 << 60 }, "", "layer 1 claims to have"},
		"a layer from elsewhere":       {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].URLs = []string{"http://169.254.169.254/?s3cr3t"} }, "", "from elsewhere than the registry"},
		"a foreign layer":              {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].MediaType = types.DockerForeignLayer }, "", "from elsewhere than the registry"},
		"an encrypted layer":           {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].MediaType += "+encrypted" }, "", "layer 1 is encrypted"},
		"too many layers":              {[][]byte{good}, many, "", "it has 1001 layers"},
		"no layers":                    {nil, nil, "", "its manifest has no layers"},
		"a digest of no algorithm":     {[][]byte{good}, func(m *v1.Manifest) { m.Layers[0].Digest = v1.Hash{} }, "", "its manifest can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.push(c.change, c.layers...)
			_, err := pull(t, image.Container{Reference: at(t, f), Path: c.path})
			refused(t, err, c.want)
		})
	}
}

func TestContainer_LyingRegistries(t *testing.T) {
	good, other := tarred(t, plain("disk/d", disk(5000))), tarred(t, plain("disk/d", disk(5008)[8:]))
	lie := func(change func(f *fake)) *fake {
		f := &fake{}
		f.push(nil, good)
		change(f)
		return f
	}
	manifest := func(f *fake, raw string) { f.put([]byte(raw)) }
	digest := sha(good)
	layer := fmt.Sprintf(`{"digest":%q,"size":%d}`, digest, len(good))
	for name, c := range map[string]struct {
		f    *fake
		want string
	}{
		"another layer":           {lie(func(f *fake) { f.blobs[digest] = &server{content: other} }), "a layer has the digest " + sha(other)},
		"a longer layer":          {lie(func(f *fake) { f.blobs[digest] = &server{content: append(bytes.Clone(good), 0)} }), "more than the"},
		"a shorter layer":         {lie(func(f *fake) { f.blobs[digest] = &server{content: good[:len(good)-1]} }), "has only"},
		"an empty layer":          {lie(func(f *fake) { f.blobs[digest] = &server{} }), "has only 0 of"},
		"a web page":              {lie(func(f *fake) { f.blobs[digest] = &server{content: []byte("<html>")} }), "has only"},
		"a manifest that is none": {lie(func(f *fake) { manifest(f, "garbage") }), "its manifest can't be read"},
		"a manifest and an index": {lie(func(f *fake) { manifest(f, `{"layers":[`+layer+`],"manifests":[`+layer+`]}`) }), "an index of several at once"},
		"a huge manifest":         {lie(func(f *fake) { manifest(f, strings.Repeat(" ", 2<<20)) }), "its manifest has more than 1048576 bytes"},
		"an index of no image":    {lie(func(f *fake) { manifest(f, `{"manifests":[`+layer+`]}`) }), "no image for Linux"},
		"an index of a huge image": {lie(func(f *fake) {
			manifest(f, fmt.Sprintf(`{"manifests":[{"digest":%q,"size":99999999,"platform":{"os":"linux","architecture":"amd64"}}]}`, digest))
		}), "a manifest of 99999999 bytes"},
		"a manifest of another size": {lie(func(f *fake) { index(f, -1) }), "more than the"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pull(t, image.Container{Reference: at(t, c.f)})
			refused(t, err, c.want)
		})
	}
	t.Run("another manifest", func(t *testing.T) {
		f := lie(func(*fake) {})
		f.manifests[sha(nil)] = f.manifests["latest"]
		_, err := readAll(image.Container{Reference: at(t, f)}.Open(t.Context(), sha(nil)))
		refused(t, err, "and not "+sha(nil))
	})
	t.Run("an index in an index", func(t *testing.T) {
		f := lie(func(f *fake) { index(f, 0); index(f, 0) })
		_, err := pull(t, image.Container{Reference: at(t, f)})
		refused(t, err, "its index names another index")
	})
}

// index puts an index of the latest manifest, whose size is wrong by more.
func index(f *fake, more int) {
	latest := f.manifests["latest"]
	f.put(fmt.Appendf(nil, `{"manifests":[{"digest":%q,"size":%d,"platform":{"os":"linux","architecture":"amd64"}}]}`, sha(latest), len(latest)+more))
}
