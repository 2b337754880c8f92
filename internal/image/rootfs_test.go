package image_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// layerOf is a layer that is packed, as builders have it.
func layerOf(t *testing.T, content []byte) v1.Layer {
	t.Helper()
	layer, err := tarball.LayerFromReader(bytes.NewReader(content)) //nolint:staticcheck // LayerFromOpener is the same, but longer
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// Images with common lower layers have these in common, whatever is above, and each layer is read unpacked.
func TestContainer_RootFS(t *testing.T) {
	ref := at(t, registry.New(quiet()))
	below, one, other := tarred(t, plain("etc/os-release", disk(5000))), tarred(t, plain("a", disk(10))), tarred(t, plain("b", disk(10)))
	var found []image.RootFS
	for _, content := range [][][]byte{{below, one}, {below, other}, {one, below}} {
		var layers []v1.Layer
		for _, l := range content {
			layers = append(layers, layerOf(t, l))
		}
		img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
			OS: "linux", Architecture: "arm", Variant: "v7", RootFS: v1.RootFS{Type: "layers"},
			Config: v1.Config{
				Entrypoint: []string{"/bin/a"}, Cmd: []string{"b c"}, Env: []string{"A=b"}, User: "1:2", WorkingDir: "/w", StopSignal: "SIGINT",
			},
		})
		if err == nil {
			img, err = mutate.AppendLayers(img, layers...)
		}
		if err != nil {
			t.Fatal(err)
		}
		push(t, ref+":v1", func(r named, o ...remote.Option) error { return remote.Write(r, img, o...) })
		c := image.Container{Reference: ref + ":v1"}
		digest, err := c.Resolve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		is, err := c.RootFS(t.Context(), digest)
		if err != nil {
			t.Fatal(err)
		}
		for n, l := range is.Layers {
			if got, err := readAll(l.Open(t.Context())); err != nil || !bytes.Equal(got, content[n]) {
				t.Errorf("layer %d: %d bytes, %v", n+1, len(got), err)
			}
		}
		found = append(found, is)
	}
	is := found[0]
	if got := fmt.Sprintln(is.Architecture, is.Entrypoint, is.Command, is.Environment, is.User, is.WorkingDirectory, is.StopSignal); got != "arm/v7 [/bin/a] [b c] [A=b] 1:2 /w SIGINT\n" {
		t.Errorf("the configuration is %s", got)
	}
	var ids []string
	for _, is := range found {
		for _, l := range is.Layers {
			ids = append(ids, l.ChainID)
		}
	}
	want := sha([]byte(sha(below) + " " + sha(one)))
	if ids[0] != sha(below) || ids[1] != want || ids[2] != ids[0] || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 5 {
		t.Errorf("the layers are %s", strings.Join(ids, ", "))
	}
}

// What a registry has must be an image for Linux, with the layers that its configuration names.
func TestContainer_RootFSRefuses(t *testing.T) {
	layer := tarred(t, plain("a", disk(10)))
	for name, c := range map[string]struct {
		config   func(*v1.ConfigFile)
		manifest func(*v1.Manifest)
		want     string
	}{
		"another layer":     {func(c *v1.ConfigFile) { c.RootFS.DiffIDs[0] = hashOf(t, nil) }, nil, "unpacked, a layer has the digest"},
		"more layers":       {func(c *v1.ConfigFile) { c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, hashOf(t, nil)) }, nil, "has 2 layers, and its manifest 1"},
		"no layers":         {func(c *v1.ConfigFile) { c.RootFS = v1.RootFS{} }, nil, "another artifact"},
		"an algorithm":      {func(c *v1.ConfigFile) { c.RootFS.DiffIDs[0].Algorithm = "md5" }, nil, "can't be read"},
		"another system":    {func(c *v1.ConfigFile) { c.OS = "windows" }, nil, "not for Linux"},
		"a large one":       {nil, func(m *v1.Manifest) { m.Config.Size = 5 << 20 }, "a configuration of 5242880 bytes"},
		"of another size":   {nil, func(m *v1.Manifest) { m.Config.Size-- }, "more than the"},
		"of another digest": {nil, func(m *v1.Manifest) { m.Config.Digest = hashOf(t, layer) }, "and not sha256:"},
		"without one":       {nil, func(m *v1.Manifest) { m.Config = v1.Descriptor{} }, "names no configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			config := v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{hashOf(t, layer)}}}
			if c.config != nil {
				c.config(&config)
			}
			raw, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			f := &fake{blobs: map[string]http.Handler{}}
			digest := f.push(func(m *v1.Manifest) {
				m.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: hashOf(t, raw), Size: int64(len(raw))}
				if c.manifest != nil {
					c.manifest(m)
				}
				f.blobs[m.Config.Digest.String()] = &server{content: raw, ranges: "Last-Modified"}
			}, layer)
			is, err := image.Container{Reference: at(t, f) + "@" + digest}.RootFS(t.Context(), digest)
			if err == nil {
				_, err = readAll(is.Layers[0].Open(t.Context()))
			}
			if !errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, and should contain %s", err, c.want)
			}
		})
	}
}

// An image that is in no index may be for another architecture than the one that is wanted.
func TestContainer_RootFSOfAnotherArchitecture(t *testing.T) {
	layer := tarred(t, plain("a", disk(10)))
	for _, c := range []struct {
		architecture, variant, wanted, want string
	}{
		{"arm64", "", "amd64", "amd64"},
		{"amd64", "", "amd64", ""},
		{"amd64", "", "", ""},
		{"arm64", "v8", "arm64", ""},
		{"arm", "", "arm/v7", ""},
		{"arm", "v6", "arm/v7", "arm/v7"},
	} {
		reference, digest := configured(t, layer, v1.ConfigFile{OS: "linux", Architecture: c.architecture, Variant: c.variant})
		is, err := image.Container{Reference: reference, Arch: c.wanted}.RootFS(t.Context(), digest)
		if err != nil || is.Wanted != c.want {
			t.Errorf("%+v: %q, %v", c, is.Wanted, err)
		}
	}
}

// What a registry has is not repeated without an end, and not read in part.
func TestContainer_RootFSOfHostileConfiguration(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for name, c := range map[string]struct{ old, new, want string }{
		"a long system":   {`"linux"`, `"` + long + `"`, "not for Linux"},
		"a long time":     {`"0001-01-01T00:00:00Z"`, `"` + long + `"`, "can't be read"},
		"a long digest":   {`"sha256:`, `"` + long, "can't be read"},
		"another object":  {`"linux"`, `"linux"`, "can't be read"},
		"a long variable": {`"os":"linux"`, `"os":{"` + long + `":1}`, "can't be read"},
	} {
		layer := tarred(t, plain("a", disk(10)))
		reference, digest := configured(t, layer, v1.ConfigFile{OS: "linux", Architecture: "amd64"}, func(raw []byte) []byte {
			changed := bytes.Replace(raw, []byte(c.old), []byte(c.new), 1)
			if name == "another object" {
				changed = append(changed, "{}"...)
			}
			return changed
		})
		_, err := image.Container{Reference: reference}.RootFS(t.Context(), digest)
		if !errors.Is(err, image.ErrUntrusted) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1200v", name, err)
		}
	}
}

// configured is an image of one layer with that configuration, in a registry, and its digest.
func configured(t *testing.T, layer []byte, config v1.ConfigFile, change ...func([]byte) []byte) (reference, digest string) {
	t.Helper()
	config.RootFS = v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{hashOf(t, layer)}}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		raw = f(raw)
	}
	f := &fake{blobs: map[string]http.Handler{}}
	digest = f.push(func(m *v1.Manifest) {
		m.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: hashOf(t, raw), Size: int64(len(raw))}
		f.blobs[m.Config.Digest.String()] = &server{content: raw, ranges: "Last-Modified"}
	}, layer)
	return at(t, f) + "@" + digest, digest
}

// A layer may be elsewhere, at an address that is signed.
func TestContainer_RootFSHidesSignatures(t *testing.T) {
	image.WithoutPauses(t)
	layer := tarred(t, plain("a", disk(100_000)))
	raw, err := json.Marshal(v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{hashOf(t, layer)}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, elsewhere := range map[string]http.HandlerFunc{
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
			_, _ = w.Write(layer[:50_000])
			panic(http.ErrAbortHandler)
		},
	} {
		signed := serve(t, elsewhere).URL + "/?sig=s3cr3t"
		f := &fake{blobs: map[string]http.Handler{}}
		digest := f.push(func(m *v1.Manifest) {
			m.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: hashOf(t, raw), Size: int64(len(raw))}
			f.blobs[m.Config.Digest.String()] = &server{content: raw, ranges: "Last-Modified"}
			f.blobs[m.Layers[0].Digest.String()] = http.RedirectHandler(signed, http.StatusFound)
		}, layer)
		is, err := image.Container{Reference: at(t, f) + "@" + digest}.RootFS(t.Context(), digest)
		if err != nil || !strings.Contains(is.Layers[0].Image, "/image@sha256:") {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err = readAll(is.Layers[0].Open(t.Context())); err == nil {
			t.Errorf("%s: %v", name, err)
		}
		hidesSecrets(t, err)
	}
}

func hashOf(t *testing.T, content []byte) v1.Hash {
	t.Helper()
	hash, err := v1.NewHash(sha(content))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
