//go:build acc

package lab

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func addImage(t *testing.T, l *Lab, spec ImageSpec) (*Registry, RegistryImage) {
	t.Helper()
	registry, err := l.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image, err := registry.AddImage(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return registry, image
}

func pull(t *testing.T, reference string, options ...remote.Option) (v1.Image, error) {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	return remote.Image(parsed, append(options, remote.WithContext(t.Context()))...)
}

// layersOf returns the files of an image's layers: paths, and the contents of the files among them.
func layersOf(t *testing.T, image v1.Image) (paths [][]string, contents map[string]string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	contents = map[string]string{}
	for _, layer := range layers {
		archive, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for r := tar.NewReader(archive); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, header.Name)
			contents[header.Name] = string(content)
		}
		if err := archive.Close(); err != nil {
			t.Error(err)
		}
		paths = append(paths, names)
	}
	return paths, contents
}

func TestAccRegistry_PulledIsPushed(t *testing.T) {
	l := sharedLab(t)
	for compression, mediaType := range map[string]types.MediaType{
		"": types.OCILayer, "gzip": types.OCILayer, "zstd": types.OCILayerZStd, "none": types.OCIUncompressedLayer,
	} {
		registry, pushed := addImage(t, l, ImageSpec{
			Repository: "tests/disk", Tag: "v1", Compression: compression,
			Layers: []ImageLayer{
				{Files: map[string][]byte{"/disk/old.img": []byte("old"), "etc/note": []byte("note")}},
				{Files: map[string][]byte{"disk/new.img": []byte("content")}, Whiteouts: []string{"disk/old.img", "etc/"}},
			},
		})
		blobs, manifests := registry.Pulls(), registry.Manifests()
		for _, reference := range []string{pushed.Reference, pushed.ByDigest} {
			image, err := pull(t, reference)
			if err != nil {
				t.Fatal(compression, err)
			}
			paths, contents := layersOf(t, image)
			want := [][]string{{"disk/", "disk/old.img", "etc/", "etc/note"}, {"disk/", "disk/.wh.old.img", "disk/new.img", "etc/", "etc/.wh..wh..opq"}}
			if !slices.EqualFunc(paths, want, slices.Equal) || contents["disk/new.img"] != "content" {
				t.Errorf("%s: %s has %q, %q", compression, reference, paths, contents)
			}
			if digest, err := image.Digest(); err != nil || digest.String() != pushed.Digest {
				t.Errorf("%s: the digest is %s (%v), want %s", compression, digest, err, pushed.Digest)
			}
			manifest, err := image.Manifest()
			if err != nil || manifest.Layers[0].MediaType != mediaType {
				t.Errorf("%s: the layers are %v (%v)", compression, manifest.Layers, err)
			}
		}
		// Each pull has two layers, and the configuration with their uncompressed digests.
		if got := registry.Pulls() - blobs; got < 4 || got > 6 {
			t.Errorf("%s: it counts %d GETs of blobs, want 4 to 6", compression, got)
		}
		if got := registry.Manifests() - manifests; got != 2 {
			t.Errorf("%s: it counts %d GETs of manifests, want 2", compression, got)
		}
	}
}

func TestAccRegistry_Platforms(t *testing.T) {
	l := sharedLab(t)
	content := func(text string) []ImageLayer {
		return []ImageLayer{{Files: map[string][]byte{"disk/disk.img": []byte(text)}}}
	}
	_, pushed := addImage(t, l, ImageSpec{
		Repository: "tests/platforms", Tag: "v1",
		Platforms: map[string][]ImageLayer{"linux/amd64": content("for AMD"), "linux/arm64": content("for ARM")},
	})
	for _, reference := range []string{pushed.Reference, pushed.ByDigest} {
		for architecture, want := range map[string]string{"amd64": "for AMD", "arm64": "for ARM"} {
			image, err := pull(t, reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
			if err != nil {
				t.Fatal(err)
			}
			if _, contents := layersOf(t, image); contents["disk/disk.img"] != want {
				t.Errorf("%s has %q", architecture, contents)
			}
		}
	}
}

func TestAccRegistry_CutsConnections(t *testing.T) {
	l := sharedLab(t)
	content := make([]byte, 1<<20)
	_, _ = rand.Read(content) // it never fails
	registry, pushed := addImage(t, l, ImageSpec{
		Repository: "tests/cut", Tag: "v1", Compression: "none",
		Layers: []ImageLayer{{Files: map[string][]byte{"disk/disk.img": content}}},
	})
	registry.Cut(300_000, 600_000)
	image, err := pull(t, pushed.Reference)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := image.ConfigFile(); err != nil {
		t.Errorf("the configuration was cut, too: %v", err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{300_000, 600_000, 1<<20 + 2048} {
		body, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if cut := want < 1<<20; len(got) != want || errors.Is(err, io.ErrUnexpectedEOF) != cut {
			t.Errorf("got %d bytes and %v, want %d", len(got), err, want)
		}
		if whole := want > 1<<20; whole && !bytes.Contains(got, content) {
			t.Error("the layer has other bytes")
		}
		_ = body.Close()
	}
}

func TestAccRegistry_PrivateNeedsPassword(t *testing.T) {
	l := sharedLab(t)
	registry, pushed := addImage(t, l, ImageSpec{
		Repository: "tests/private", Tag: "v1", Layers: []ImageLayer{{Files: map[string][]byte{"disk/disk.img": []byte("content")}}},
	})
	if _, err := pull(t, pushed.Private, remote.WithAuth(&authn.Basic{Username: registry.Username, Password: registry.Password})); err != nil {
		t.Error(err)
	}
	for _, who := range []authn.Authenticator{authn.Anonymous, &authn.Basic{Username: registry.Username, Password: "wrong"}} {
		_, err := pull(t, pushed.Private, remote.WithAuth(who))
		var refused *transport.Error
		if !errors.As(err, &refused) || refused.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v is let in, or fails at something else: %v", who, err)
		}
	}
}
