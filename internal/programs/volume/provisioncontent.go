package volume

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/programs/volume/iscsi"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// content is what a volume has by its request; without it, that of -image, or nothing.
type content struct {
	// Image is a container image with a disk, which is at Path in it.
	Image string `json:"image,omitempty"`
	Path  string `json:"path,omitempty"`
	// RootFileSystem is a container image whose files are in a file system on the disk.
	RootFileSystem string `json:"rootFileSystem,omitempty"`
	// ReadOnly is whether initiators only read it.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// isGiven is whether the request names what the volume has.
func (c content) isGiven() bool { return c.Image != "" || c.RootFileSystem != "" }

// takeParameters takes what is of the content from the parameters.
func (c *content) takeParameters(all url.Values) error {
	for name, to := range map[string]*string{"image": &c.Image, "path": &c.Path, "root_filesystem": &c.RootFileSystem} {
		if *to = all.Get(name); len(all[name]) > 1 || all.Has(name) && *to == "" {
			return refuseWith(http.StatusBadRequest, "the parameter %s is empty, or there twice", name)
		}
		delete(all, name)
	}
	if values := all["read_only"]; len(values) > 0 {
		if c.ReadOnly = slices.Equal(values, []string{"true"}); !c.ReadOnly && !slices.Equal(values, []string{"false"}) {
			return refuseWith(http.StatusBadRequest, "the parameter read_only is %.40q, and may be true or false", values)
		}
		delete(all, "read_only")
	}
	if c.Image != "" && c.RootFileSystem != "" || c.Path != "" && c.Image == "" {
		return refuseWith(http.StatusBadRequest, "image and root_filesystem exclude each other, and path is that of a disk in image")
	}
	return nil
}

// allow refuses content that -images doesn't admit, and another one than a volume has.
func (p *provisioner) allow(v *provisioned, size int64, of content) error {
	name := of.Image + of.RootFileSystem
	isBelow := func(prefix string) bool { return strings.HasPrefix(name, strings.TrimRight(prefix, "/")+"/") }
	switch {
	case v != nil && (v.content != of || of.ReadOnly && v.Size != size):
		return refuseWith(http.StatusConflict, "the volume of this key was made with size %d, image %.60q, path %.60q, root_filesystem "+
			"%.60q and read_only %t. Ask for the same, or use another key", v.Size, v.Image, v.Path, v.RootFileSystem, v.ReadOnly)
	case v != nil:
		return nil
	case of.ReadOnly && !of.isGiven() && p.image.Reference == "":
		return refuseWith(http.StatusBadRequest, "a volume that is read_only needs an image or a root_filesystem")
	// The reference becomes part of an address, in which .. would lead out of the prefix.
	case of.isGiven() && (path.Clean(name) != name || !slices.ContainsFunc(p.images, isBelow)):
		return refuseWith(http.StatusForbidden, "%.100q is none of the container images that this server takes (-images): below %.300q",
			name, p.images)
	case of.RootFileSystem != "" && size != 0 && size < rootfs.Size || of.RootFileSystem != "" && rootfs.Size > p.maxSize:
		return refuseWith(http.StatusBadRequest, "a root_filesystem has %d bytes: ask for as much or more, or for no size; -max-size must "+
			"allow that", int64(rootfs.Size))
	}
	if err := p.container(of).Check(); of.isGiven() && err != nil {
		return refuseWith(http.StatusBadRequest, "%.100q: %w", name, err)
	}
	return nil
}

// container is the image of a volume; without a reference, the volume is blank.
func (p *provisioner) container(of content) image.Container {
	if !of.isGiven() {
		return p.image
	}
	return image.Container{Reference: of.Image + of.RootFileSystem, Path: of.Path, Arch: p.image.Arch, Limit: p.maxSize}
}

// fillRoot writes a file system with the files of a container image to an empty disk. It fills the beginning of a larger disk: a guest
// enlarges it.
func (p *provisioner) fillRoot(ctx context.Context, v *provisioned, disk string, size int64) (err error) {
	from := p.container(v.content)
	if v.Digest, err = from.Resolve(ctx); err != nil {
		return err
	}
	is, err := from.RootFS(ctx, v.Digest)
	if err != nil {
		return err
	}
	if is.Wanted != "" {
		return refuseWith(http.StatusBadRequest, "the image is for %.40q, and not for %.40q (-arch)", is.Architecture, is.Wanted)
	}
	file, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var id [16]byte
	_, _ = rand.Read(id[:])
	files := rootfs.New(id)
	for n, layer := range is.Layers {
		p.log(fmt.Sprintf("layer %d of %d of %s", n+1, len(is.Layers), from.Reference))
		if err := writeLayer(ctx, files, layer, file); err != nil {
			return fmt.Errorf("layer %d of %d: %w", n+1, len(is.Layers), err)
		}
	}
	return file.Truncate(max(size, rootfs.Size))
}

func writeLayer(ctx context.Context, files *rootfs.FileSystem, layer image.RootLayer, disk *os.File) error {
	from, err := layer.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if err := files.ApplyTo(from, disk); err != nil {
		return err
	}
	return image.Drain(from)
}

// lun is the volume as initiators have it.
func (v *provisioned) lun() iscsi.LUN {
	return iscsi.LUN{Disk: v.disk, Serial: v.Serial, ReadOnly: v.ReadOnly}
}
