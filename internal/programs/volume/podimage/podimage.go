// Package podimage builds the container image of virtclaim-volume: its program and nothing else.
package podimage

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	program = "virtclaim-volume"
	source  = "github.com/virtclaim/terraform-provider-virtclaim"
	// nobody is the user of the image: one without rights, and without a name.
	nobody = "65532:65532"
)

// Architectures are those of the image.
var Architectures = []string{"amd64", "arm64"}

// Build builds the program of a version for architectures, and an image of each. The same source gives the same digests.
func Build(ctx context.Context, version string, architectures ...string) (v1.ImageIndex, error) {
	folder, err := os.MkdirTemp("", "podimage-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		path := filepath.Join(folder, arch)
		if err := compile(ctx, path, version, arch); err != nil {
			return nil, err
		}
		image, err := imageOf(path, version, arch)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}

func compile(ctx context.Context, path, version, arch string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version,
		"-o", path, source+"/internal/programs/volume/cmd/"+program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if said, err := build.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("build %s for %s: %w", program, arch, err), errors.New(string(said)))
	}
	return nil
}

func imageOf(path, version, arch string) (v1.Image, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	archive, err := archiveOf(content)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1),
		layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", arch
	file.Config = v1.Config{
		Entrypoint: []string{"/" + program}, User: nobody, WorkingDir: "/",
		Labels: map[string]string{"org.opencontainers.image.source": "https://" + source, "org.opencontainers.image.version": version},
	}
	return mutate.ConfigFile(image, file)
}

func archiveOf(content []byte) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: program, Mode: 0o555, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err := w.Close()
	return archive.Bytes(), err
}
