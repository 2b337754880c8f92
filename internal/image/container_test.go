package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// tarred returns an archive of entries.
func tarred(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		// Linkname has the content of regular files here.
		content := ""
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
		}
		h.Mode, h.Size = 0o644, int64(len(content))
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
	return b.Bytes()
}

func plain(name string, content []byte) tar.Header {
	return tar.Header{Name: name, Linkname: string(content)}
}

// fake is a registry that serves any content, also inconsistent. It has one repository, image.
type fake struct {
	manifests map[string][]byte
	blobs     map[string]http.Handler
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/image/"), "/")
	switch {
	case r.URL.Path == "/v2/":
	case dir == "manifests" && f.manifests[id] != nil:
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write(f.manifests[id])
	case dir == "blobs" && f.blobs[id] != nil:
		f.blobs[id].ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// push adds an image with layers, after change has modified its manifest, and returns the digest.
func (f *fake) push(change func(*v1.Manifest), layers ...[]byte) string {
	var m v1.Manifest
	for _, l := range layers {
		digest, _, _ := v1.SHA256(bytes.NewReader(l))
		if f.blobs == nil {
			f.blobs = map[string]http.Handler{}
		}
		if f.blobs[digest.String()] == nil {
			f.blobs[digest.String()] = &server{content: l, ranges: "Last-Modified"}
		}
		m.Layers = append(m.Layers, v1.Descriptor{MediaType: types.OCILayer, Digest: digest, Size: int64(len(l))})
	}
	if change != nil {
		change(&m)
	}
	raw, _ := json.Marshal(m)
	return f.put(raw)
}

func (f *fake) put(raw []byte) string {
	if f.manifests == nil {
		f.manifests = map[string][]byte{}
	}
	f.manifests[sha(raw)], f.manifests["latest"] = raw, raw
	return sha(raw)
}

// at returns the name of the image in a registry.
func at(t *testing.T, h http.Handler) string {
	t.Helper()
	u, err := url.Parse(serve(t, h).URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host + "/image"
}

// pull does what a plan and an apply do.
func pull(t *testing.T, c image.Container) ([]byte, error) {
	t.Helper()
	digest, err := c.Resolve(t.Context())
	if err != nil {
		return nil, err
	}
	return readAll(c.Open(t.Context(), digest))
}

func quiet() registry.Option { return registry.Logger(log.New(io.Discard, "", 0)) }

func push(t *testing.T, reference string, pushable func(name.Reference, ...remote.Option) error, options ...remote.Option) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := pushable(ref, options...); err != nil {
		t.Fatal(err)
	}
}

func built(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestContainer(t *testing.T) {
	want := disk(100_000)
	layer := tarred(t, tar.Header{Name: "disk/", Typeflag: tar.TypeDir}, plain("disk/disk.img", want))
	below := static.NewLayer(tarred(t, plain("etc/os-release", disk(5000)), plain("disk/old.img", disk(10)), plain("x/y", want)), types.OCIUncompressedLayer)
	gone := tarred(t, tar.Header{Name: "disk/.wh.old.img"}, plain("disk/disk.img", want))
	ref := at(t, registry.New(quiet()))
	for name, c := range map[string]struct {
		layers []v1.Layer
		path   string
	}{
		"plain":                   {[]v1.Layer{static.NewLayer(layer, types.OCIUncompressedLayer)}, ""},
		"gzip":                    {[]v1.Layer{static.NewLayer(gzipped(t, layer), types.OCILayer)}, ""},
		"Docker's gzip":           {[]v1.Layer{static.NewLayer(gzipped(t, layer), types.DockerLayer)}, ""},
		"zstd":                    {[]v1.Layer{static.NewLayer(zstandard(t, layer), types.OCILayerZStd)}, ""},
		"gzip that says zstd":     {[]v1.Layer{static.NewLayer(gzipped(t, layer), types.OCILayerZStd)}, ""},
		"a path":                  {[]v1.Layer{below, static.NewLayer(gzipped(t, layer), types.OCILayer)}, "/x/y"},
		"a removal of the other":  {[]v1.Layer{below, static.NewLayer(gzipped(t, gone), types.OCILayer)}, ""},
		"a disk that is packed":   {[]v1.Layer{static.NewLayer(tarred(t, plain("disk/d.gz", gzipped(t, want))), types.OCIUncompressedLayer)}, ""},
		"an absolute name":        {[]v1.Layer{static.NewLayer(tarred(t, plain("/disk/d", want)), types.OCIUncompressedLayer)}, ""},
		"a path like another one": {[]v1.Layer{static.NewLayer(tarred(t, plain("disk/d", want), plain("disk/de", nil)), types.OCIUncompressedLayer)}, "disk/d"},
	} {
		t.Run(name, func(t *testing.T) {
			img := built(t, c.layers...)
			push(t, ref+":v1", func(r named, o ...remote.Option) error { return remote.Write(r, img, o...) })
			tag := image.Container{Reference: ref + ":v1", Path: c.path, Arch: "s390x"}
			digest, err := tag.Resolve(t.Context())
			if has, _ := img.Digest(); err != nil || digest != has.String() {
				t.Fatalf("it resolves to %q, %v", digest, err)
			}
			pinned := image.Container{Reference: ref + "@" + digest, Path: c.path}
			for _, c := range []image.Container{tag, pinned} {
				if got, err := pull(t, c); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, %v", c.Reference, len(got), err)
				}
			}
		})
	}
}

type named = name.Reference

func TestContainer_Architectures(t *testing.T) {
	index := v1.ImageIndex(empty.Index)
	var all []mutate.IndexAddendum
	for _, p := range []string{"linux/amd64/v3", "windows/amd64", "unknown/unknown", "linux/amd64", "linux/arm64/v8", "linux/arm/v6", "linux/arm/v7"} {
		platform, err := v1.ParsePlatform(p)
		if err != nil {
			t.Fatal(err)
		}
		img := built(t, static.NewLayer(tarred(t, plain("disk/d", fmt.Appendf(nil, "%-512s", p))), types.OCIUncompressedLayer))
		all = append(all, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	index = mutate.AppendManifests(index, all...)
	ref := at(t, registry.New(quiet()))
	push(t, ref, func(r named, o ...remote.Option) error { return remote.WriteIndex(r, index, o...) })
	for arch, want := range map[string]string{
		"": "linux/amd64/v3", "amd64": "linux/amd64", "amd64/v3": "linux/amd64/v3", "arm64": "linux/arm64/v8", "arm64/v8": "linux/arm64/v8",
		"arm/v7": "linux/arm/v7", "arm": "linux/arm/v6",
	} {
		if got, err := pull(t, image.Container{Reference: ref, Arch: arch}); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%q gets %q, %v", arch, got, err)
		}
	}
	_, err := pull(t, image.Container{Reference: ref, Arch: "s390x"})
	if err == nil || !strings.Contains(err.Error(), "it has no image for the architecture s390x, only for amd64/v3, amd64, arm64, arm/v6, arm/v7") {
		t.Errorf("got %v", err)
	}
}

func TestContainer_References(t *testing.T) {
	digest := sha(nil)
	for reference, want := range map[string]string{
		"quay.io/a/b:v1": "", "debian": "", "localhost:5000/a": "", "quay.io/a/b@" + digest: digest, "quay.io/a/b:v1@" + digest: digest,
		"": "-", "docker://quay.io/a/b": "-", "https://user:hunter2@quay.io/a": "-", "quay.io/A": "-", "a@sha256:12": "-", "a:b:c": "-",
	} {
		c := image.Container{Reference: reference}
		err := c.Check()
		if got, ok := c.IsPinned(); ok != strings.HasPrefix(want, "sha256") || ok && got != want {
			t.Errorf("%q is pinned to %q", reference, got)
		}
		if (err != nil) != (want == "-") || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", reference, err)
		}
	}
	if err := (image.Container{Reference: "a", Password: "hunter2"}).Check(); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password alone: %v", err)
	}
}

// guarded is a registry that requires a user and a password, and records the credentials of all requests.
func guarded(h http.Handler, seen *[]string) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		mu.Lock()
		*seen = append(*seen, password)
		mu.Unlock()
		if user != "me" || password != "hunter2" {
			w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
			http.Error(w, "hunter2 and "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Credentials are sent to the registry, and not to the servers to which it redirects for layers.
func TestContainer_Credentials(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	want := disk(10_000)
	layer := tarred(t, plain("disk/d", want))
	var seen, elsewhere []string
	storage := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization")+r.Header.Get("Referer")+r.Header.Get("Cookie"))
		_, _ = w.Write(layer)
	}))
	f := &fake{blobs: map[string]http.Handler{sha(layer): http.RedirectHandler(storage.URL+"/x?signature=s3cr3t", http.StatusTemporaryRedirect)}}
	f.push(nil, layer)
	ref := at(t, guarded(f, &seen))
	if got, err := pull(t, image.Container{Reference: ref, Username: "me", Password: "hunter2"}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if !slices.Equal(elsewhere, []string{""}) {
		t.Errorf("the other server has %q", elsewhere)
	}
	for _, c := range []image.Container{{Reference: ref, Username: "me", Password: "hunter3"}, {Reference: ref}} {
		_, err := pull(t, c)
		if err == nil || !strings.Contains(err.Error(), "Check that it is there, and username and password") || strings.Contains(err.Error(), "hunter3") {
			t.Errorf("got %v", err)
		}
	}
	if auth := (authn.Basic{Username: "me", Password: "hunter2"}); !slices.Contains(seen, auth.Password) {
		t.Errorf("the registry has seen %q", seen)
	}
}

// A credential helper may print the password and then fail.
func TestContainer_HelperPrintsPassword(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir)
	helper := filepath.Join(dir, "docker-credential-broken")
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"credsStore": "broken"}`), 0o600),
		os.WriteFile(helper, []byte("#!/bin/sh\necho '{\"Username\":\"me\",\"Secret\":\"hunter2\"}'\nexit 1\n"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	f.push(nil)
	_, err = pull(t, image.Container{Reference: at(t, f)})
	if err == nil || !strings.Contains(err.Error(), "credential helper docker-credential-broken, which "+filepath.Join(dir, "config.json")+" names, fails") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// The disk is complete, wherever the connection breaks off in a layer.
func TestContainer_LayerResumes(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(100_000)
	layer := gzipped(t, tarred(t, plain("disk/d", want)))
	for _, cut := range []int{0, 1, 511, len(layer) / 2, len(layer) - 1} {
		for _, ranges := range []string{"", "weak ETag", "ETag"} {
			t.Run(fmt.Sprintf("%d %s", cut, ranges), func(t *testing.T) {
				blob := &server{content: layer, ranges: ranges, cuts: []int{cut, 10}}
				f := &fake{blobs: map[string]http.Handler{sha(layer): blob}}
				f.push(nil, layer)
				if got, err := pull(t, image.Container{Reference: at(t, f)}); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				if ranged := blob.seen[1].Get("Range") != ""; ranged != (cut > 0) {
					t.Errorf("the second request is %v", blob.seen[1])
				}
			})
		}
	}
}

// If a registry has no HEAD, or no digest in its answer, the manifest is read.
func TestContainer_RegistryWithoutHEAD(t *testing.T) {
	f := &fake{}
	want := f.push(nil, tarred(t, plain("disk/d", nil)))
	ref := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		f.ServeHTTP(w, r)
	}))
	if got, err := (image.Container{Reference: ref}).Resolve(t.Context()); err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := (image.Container{Reference: ref + ":none"}).Resolve(t.Context()); err == nil || !strings.Contains(err.Error(), "Check the name and the tag") {
		t.Errorf("got %v", err)
	}
}

// The registry grants tokens, and its server repeats requests in its answers.
func TestContainer_Tokens(t *testing.T) {
	image.WithoutPauses(t)
	want := disk(10_000)
	f := &fake{}
	f.push(nil, tarred(t, plain("disk/d", want)))
	ref := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && user == "me" && password == "hunter2":
			_, _ = io.WriteString(w, `{"token":"s3cr3t"}`)
		case r.URL.Path == "/token":
			reversed := []byte(password)
			slices.Reverse(reversed)
			http.Error(w, password+" of "+r.Header.Get("Authorization")+string(reversed), http.StatusForbidden)
		case r.Header.Get("Authorization") == "Bearer s3cr3t":
			f.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	if got, err := pull(t, image.Container{Reference: ref, Username: "me", Password: "hunter2"}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err := pull(t, image.Container{Reference: ref, Username: "you", Password: "hunter2"})
	if err == nil || !strings.Contains(err.Error(), "Check that it is there, and username and password") || strings.Contains(err.Error(), "eW91Omh1bnRlcjI") || strings.Contains(err.Error(), "2retnuh") {
		t.Errorf("got %v", err)
	}
	hidesSecrets(t, err)
}
