package lab

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/artefact"
)

// Applications are container images of a distribution's programs.
type Applications struct {
	Web, Database RegistryImage
	// Kernel is an image with the distribution's kernel.
	Kernel RegistryImage
	// Files are what the images are made of.
	Files artefact.ApplicationLayers
}

// Applications packs the images, as far as they are not in the cache, and pushes them.
func (l *Lab) Applications(ctx context.Context) (a Applications, err error) {
	registry, err := l.Registry(ctx)
	if err != nil {
		return a, err
	}
	if a.Files, err = artefact.Applications(ctx, l.cache, l.log); err != nil {
		return a, err
	}
	kernel, err := l.Kernel(ctx)
	if err != nil {
		return a, err
	}
	linux, err := KernelLayer(kernel)
	if err != nil {
		return a, err
	}
	if a.Kernel, err = registry.AddImage(ctx, ImageSpec{Repository: "linux", Tag: "1", Layers: []ImageLayer{linux}}); err != nil {
		return a, err
	}
	base := ImageLayer{Archive: a.Files.Base}
	a.Web, err = registry.AddImage(ctx, ImageSpec{
		Repository: "nginx", Tag: "1", Layers: []ImageLayer{base, {Archive: a.Files.Web}}, Compression: "zstd",
		Entrypoint: []string{"/usr/sbin/nginx", "-g", "daemon off;"},
		Configure:  func(c *v1.Config) { c.StopSignal = "SIGQUIT" },
	})
	if err != nil {
		return a, err
	}
	a.Database, err = registry.AddImage(ctx, ImageSpec{
		Repository: "postgres", Tag: "1", Layers: []ImageLayer{base, {Archive: a.Files.Database}}, Compression: "zstd",
		Entrypoint: []string{artefact.DatabaseEntrypoint},
		Configure:  func(c *v1.Config) { c.User, c.StopSignal = artefact.DatabaseUser, "SIGINT" },
	})
	return a, err
}
