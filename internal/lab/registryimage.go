package lab

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ImageSpec describes a container image to push.
type ImageSpec struct {
	// Repository and Tag are its name on the registry. A tag of another image is moved.
	Repository, Tag string
	// Layers are its content, the lowest first.
	Layers []ImageLayer
	// Platforms, such as linux/arm64, have an image each, with their own layers; the tag is that of their index. Then Layers are not used.
	Platforms map[string][]ImageLayer
	// Compression of the layers is gzip, zstd or none; empty means gzip.
	Compression string
	// Entrypoint is what a container of it runs.
	Entrypoint []string
	// Configure, if it is set, changes the rest of its configuration.
	Configure func(*v1.Config)
}

// ImageLayer is a layer of an image. It contains the folders of its files, too.
type ImageLayer struct {
	// Files are their contents by path, such as disk/disk.img.
	Files map[string][]byte
	// Programs are files that can be run.
	Programs map[string][]byte
	// Whiteouts are the paths that it hides in the layers below. One with a slash at its end hides the content of that folder, and not the
	// folder.
	Whiteouts []string
	// Archive is the path of a tar archive that is the layer: then it has nothing else.
	Archive string
}

// RegistryImage is an image that was pushed.
type RegistryImage struct {
	// Reference names it by its tag, on Registry.Address; Private does, on Registry.Private; ByDigest names it by its digest, on
	// Registry.Address.
	Reference, Private, ByDigest string
	// Digest is the digest of its manifest, or of its index.
	Digest string
}

// AddImage pushes an image. It is removed with the registry.
func (r *Registry) AddImage(ctx context.Context, spec ImageSpec) (RegistryImage, error) {
	content, err := spec.build()
	if err != nil {
		return RegistryImage{}, fmt.Errorf("make the image %s:%s: %w", spec.Repository, spec.Tag, err)
	}
	return r.PushImage(ctx, spec.Repository, spec.Tag, content)
}

// Content is an image, or the index of several.
type Content interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// PushImage pushes an image that was made elsewhere. It is removed with the registry.
func (r *Registry) PushImage(ctx context.Context, repository, tag string, content Content) (RegistryImage, error) {
	named := repository + ":" + tag
	fail := func(err error) (RegistryImage, error) {
		return RegistryImage{}, fmt.Errorf("push the image %s: %w", named, err)
	}
	digest, err := content.Digest()
	if err != nil {
		return fail(err)
	}
	to, err := name.ParseReference(r.server+"/"+named, name.StrictValidation)
	if err != nil {
		return fail(err)
	}
	if err := remote.Push(to, content, remote.WithContext(ctx)); err != nil {
		return fail(err)
	}
	return RegistryImage{
		Reference: r.Address + "/" + named, Private: r.Private + "/" + named,
		ByDigest: r.Address + "/" + repository + "@" + digest.String(), Digest: digest.String(),
	}, nil
}

// build creates the image, or the index with the images of all platforms.
func (s ImageSpec) build() (Content, error) {
	if s.Platforms == nil {
		return s.image(v1.Platform{OS: "linux", Architecture: "amd64"}, s.Layers)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range slices.Sorted(maps.Keys(s.Platforms)) {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		image, err := s.image(*platform, s.Platforms[text])
		if err != nil {
			return nil, fmt.Errorf("for %s: %w", text, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

func (s ImageSpec) image(platform v1.Platform, layers []ImageLayer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	configuration := &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Entrypoint: s.Entrypoint},
	}
	if s.Configure != nil {
		s.Configure(&configuration.Config)
	}
	image, err := mutate.ConfigFile(image, configuration)
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		layer, err := l.build(s.Compression)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	return image, nil
}

func (l ImageLayer) build(compressed string) (v1.Layer, error) {
	read := l.archive
	if l.Archive != "" {
		read = func() ([]byte, error) { return os.ReadFile(l.Archive) }
	}
	archive, err := read()
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
	switch cmp.Or(compressed, "gzip") {
	case "none":
		return static.NewLayer(archive, types.OCIUncompressedLayer), nil
	case "gzip":
		return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	case "zstd":
		return tarball.LayerFromOpener(open, tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd))
	default:
		return nil, fmt.Errorf("layers are not compressed with %q", compressed)
	}
}

// archive has no dates: the same layer always has the same digest.
func (l ImageLayer) archive() ([]byte, error) {
	entries := map[string][]byte{}
	for file, content := range l.Files {
		entries[inArchive(file)] = content
	}
	programs := map[string]bool{}
	for file, content := range l.Programs {
		entries[inArchive(file)], programs[inArchive(file)] = content, true
	}
	for _, hidden := range l.Whiteouts {
		if folder, all := strings.CutSuffix(hidden, "/"); all {
			entries[path.Join(folder, ".wh..wh..opq")] = nil
		} else {
			entries[path.Join(path.Dir(hidden), ".wh."+path.Base(hidden))] = nil
		}
	}
	for file := range maps.Clone(entries) {
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
			entries[folder+"/"] = nil
		}
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: entry, Mode: 0o644, Size: int64(len(entries[entry]))}
		if programs[entry] {
			header.Mode = 0o755
		}
		if strings.HasSuffix(entry, "/") {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(entries[entry]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return archive.Bytes(), err
}

// inArchive is a path as archives have it.
func inArchive(file string) string { return strings.TrimPrefix(path.Clean("/"+file), "/") }
