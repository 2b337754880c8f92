package lab

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// Kernel is the distribution's kernel, for machines that run container images. Prepare has downloaded it.
func (l *Lab) Kernel(ctx context.Context) (artefact.KernelPackage, error) {
	return artefact.Kernel(ctx, l.cache, l.log)
}

// Kernel is that of a Lab, without one.
func Kernel(ctx context.Context, log func(format string, args ...any)) (artefact.KernelPackage, error) {
	root, err := Root()
	if err != nil {
		return artefact.KernelPackage{}, err
	}
	return artefact.Kernel(ctx, cacheFolder(root), log)
}

// Guest is that of a Lab, without one.
func Guest(ctx context.Context, log func(format string, args ...any)) (artefact.Image, error) {
	root, err := Root()
	if err != nil {
		return artefact.Image{}, err
	}
	return artefact.Guest(ctx, cacheFolder(root), log)
}

// KernelLayer is a layer of a container image with the files of a kernel's package.
func KernelLayer(k artefact.KernelPackage) (ImageLayer, error) {
	layer := ImageLayer{Files: map[string][]byte{}}
	err := fs.WalkDir(os.DirFS(k.Root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		layer.Files[path], err = os.ReadFile(filepath.Join(k.Root, path))
		return err
	})
	return layer, err
}
