package kernel

import (
	"context"
	"fmt"
	"io"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/initramfs"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// read reads the kernel of the source, and returns its digest; empty where there is none. One that is on the host is not read.
func (r *kernel) read(ctx context.Context, h *host.Host, s sourceModel) (k *initramfs.Kernel, digest string, err error) {
	defer tfvalue.Progress(ctx, "Reading the kernel", map[string]any{"host": h.Key})()
	machine, err := h.Architecture(ctx)
	if err != nil {
		return nil, "", err
	}
	architecture := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine]
	if architecture == "" {
		return nil, "", fmt.Errorf("the host is of the architecture %s, and container images are run on x86_64 and aarch64", machine)
	}
	switch s.kind() {
	case fromHost:
		return &initramfs.Kernel{Architecture: architecture}, "", nil
	case fromContainer:
		k, digest, err = r.readImage(ctx, h, *s.Container)
	case fromURL:
		is := image.URL{URL: s.URL.URL.ValueString(), Checksum: s.URL.Checksum.ValueString()}
		digest = is.Checksum
		k, err = initramfs.Read(func() (io.ReadCloser, error) { return is.OpenFile(ctx) })
	case fromFile:
		is := image.LocalFile{Path: s.File.Path.ValueString()}
		if is.Digest, err = is.Hash(ctx); err != nil {
			return nil, "", err
		}
		digest = is.Digest
		k, err = initramfs.Read(func() (io.ReadCloser, error) { return is.OpenFile(ctx) })
	}
	if err != nil {
		return nil, "", err
	}
	if k.Architecture != architecture {
		return nil, "", fmt.Errorf("the kernel is for %s, and the host is of the architecture %s. Take one for %s", k.Architecture, machine,
			architecture)
	}
	return k, digest, nil
}

func (r *kernel) readImage(ctx context.Context, h *host.Host, from interface {
	PrepareRootFS(ctx context.Context, tags *image.Tags, hostArchitecture func(context.Context) (string, error),
		spec *content.Spec) (image.RootFS, string, error)
},
) (*initramfs.Kernel, string, error) {
	var spec content.Spec
	is, digest, err := from.PrepareRootFS(ctx, &r.Provider.Tags, h.Architecture, &spec)
	if err != nil {
		return nil, "", err
	}
	var layers []func() (io.ReadCloser, error)
	for _, l := range is.Layers {
		layers = append(layers, func() (io.ReadCloser, error) { return l.Open(ctx) })
	}
	k, err := initramfs.ReadLayers(layers)
	if err != nil {
		err = fmt.Errorf("the container image %s: %w", is.Layers[0].Image, err)
	}
	return k, digest, err
}
