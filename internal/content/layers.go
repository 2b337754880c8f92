package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/google/uuid"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/rootfs"
)

// A root file system is a stack of images that disks share, one for each layer of a container image, over that of the layer below.

// maxLayers is the maximal number of layers, as of Docker. libvirt follows a chain of 200 images.
const maxLayers = 127

// layer is the content of the image of a layer.
type layer struct {
	// below is the name of the image of the layer below; empty for the lowest one.
	below string
	// write writes all that follows the image's head, and returns the head.
	write func(ctx context.Context, out io.Writer) (head []byte, err error)
	// over is the connection that the uploads of all layers share.
	over *host.UploadConn
}

// layerID is the identity of a layer's image. Its number is that of rootfs's format: what that writes of a layer must not change with it.
func layerID(l image.RootLayer) string { return "root file system 1 " + l.ChainID }

// makeLayers creates the images of the layers that are not there, the lowest one first.
func (b *bases) makeLayers(ctx context.Context, s Spec) error {
	h := b.journal.host
	stack := stack{host: h, spec: s}
	defer stack.over.Close()
	volumes, err := h.VolumeNames(ctx, s.Pool)
	if err != nil {
		return err
	}
	domains, err := domainNames(ctx, h)
	for n := 0; n < len(s.Layers) && err == nil; {
		v, failed := host.StorageVolume{}, errNoBase
		if slices.Contains(volumes, s.baseNames[n]) {
			v, failed = finishedBase(ctx, h, domains, s.Pool, s.baseNames[n])
		}
		switch {
		case failed == nil:
			if err = s.refuseOther(n, v); err == nil {
				n++
			}
		case !errors.Is(failed, errNoBase):
			err = failed
		default: // also after another process has failed to make it
			err = b.make(ctx, s.baseNames[n], stack.content(n))
			if _, isMade := b.made[s.baseNames[n]]; isMade {
				n++
			} else if err == nil {
				volumes = append(volumes, s.baseNames[n])
				domains, err = domainNames(ctx, h)
			}
		}
		if err != nil {
			return fmt.Errorf("layer %d of %d of the container image %s: %w", n+1, len(s.Layers), s.Layers[n].Image, err)
		}
	}
	if stack.skipped > 0 && s.Skipped != nil {
		s.Skipped(stack.skipped)
	}
	return err
}

// checkLayers refuses what can't become a disk over layers, before anything is downloaded for it.
func (s Spec) checkLayers() error {
	switch {
	case len(s.Layers) > maxLayers:
		return fmt.Errorf("the container image has %d layers, and a disk at most %d. Build it with fewer ones", len(s.Layers), maxLayers)
	case len(s.Layers) > 0:
		return s.holds("the file system of the container image", rootfs.Size)
	}
	return nil
}

// below is the name of the image below a layer; empty for the lowest one.
func (s Spec) below(n int) string {
	if n == 0 {
		return ""
	}
	return s.baseNames[n-1]
}

// refuseOther refuses a volume that has the name of a layer's image, and is not that image: anyone with write access to the pool may have
// put it there, and over another file its guests would read that.
func (s Spec) refuseOther(n int, v host.StorageVolume) error {
	if len(s.Layers) == 0 || v.Format == "qcow2" && v.Capacity == rootfs.Size && nameOf(v.Backing) == s.below(n) {
		return nil
	}
	below := s.below(n)
	if below == "" {
		below = Shown(below)
	}
	return fmt.Errorf("the volume %s in storage pool %s is %s of %d bytes over %.200q, and not the image of its layer, which is qcow2 of "+
		"%d bytes over %q: something else has replaced it. Remove the disks over it and, if it is there after that, delete "+
		"it: virsh vol-delete %s --pool %s. The next disk makes it again", v.Name, v.Pool, v.Format, v.Capacity, Shown(v.Backing),
		int64(rootfs.Size), below, v.Name, v.Pool)
}

// stack is the file system of the layers that were applied.
type stack struct {
	host    Host
	spec    Spec
	files   *rootfs.FileSystem
	applied int
	skipped int
	over    host.UploadConn
}

// content is the content of the image of a layer.
func (s *stack) content(n int) *Image {
	return &Image{ID: layerID(s.spec.Layers[n]), layer: &layer{
		below: s.spec.below(n), over: &s.over,
		write: func(ctx context.Context, out io.Writer) ([]byte, error) { return s.apply(ctx, n, out) },
	}}
}

// apply applies a layer. Layers that were there, or that another process has made, are read from the host.
func (s *stack) apply(ctx context.Context, n int, out io.Writer) (head []byte, err error) {
	if s.files == nil || s.applied != n {
		if s.files, err = s.open(ctx, n); err != nil {
			return nil, err
		}
	}
	s.applied = -1 // until it is complete
	from, err := s.spec.Layers[n].Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	if head, err = s.files.Apply(from, out, s.spec.below(n)); err == nil {
		err = image.Drain(from)
	}
	if err == nil {
		s.applied = n + 1
		s.skipped += s.files.Skipped()
	}
	return head, err
}

// open reads the file system of the lowest layers. Its UUID is that of all images with the same lowest layer.
func (s *stack) open(ctx context.Context, layers int) (*rootfs.FileSystem, error) {
	var images []io.ReaderAt
	for _, name := range s.spec.baseNames[:layers] {
		images = append(images, VolumeReader{ctx, s.host, s.spec.Pool, name})
	}
	return rootfs.Open(uuid.NewSHA1(uuid.NameSpaceOID, []byte(layerID(s.spec.Layers[0]))), images)
}

// VolumeReader reads a volume's file.
type VolumeReader struct {
	Context context.Context //nolint:containedctx // io.ReaderAt has none
	Host    interface {
		VolumePart(ctx context.Context, pool, name string, offset, n int64) ([]byte, error)
	}
	Pool, Name string
}

// ReadAt reads a part of the file.
func (r VolumeReader) ReadAt(p []byte, offset int64) (int, error) {
	part, err := r.Host.VolumePart(r.Context, r.Pool, r.Name, offset, int64(len(p)))
	n := copy(p, part)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// writeLayer creates the volume with the image of a layer.
func (j *journal) writeLayer(ctx context.Context, s Spec, report func(host.Progress)) (v host.StorageVolume, err error) {
	// Before there is a volume: while a connection is opened, another process may take over, and what it has made must not be written to.
	if err := j.host.OpenUploads(ctx, s.Content.layer.over); err != nil {
		return v, err
	}
	if err := j.makeEmpty(ctx, s); err != nil {
		return v, err
	}
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	from, to := io.Pipe()
	var head []byte
	written := make(chan struct{})
	go func() {
		defer close(written)
		var err error
		head, err = s.Content.layer.write(writing, to)
		_ = to.CloseWithError(err)
	}()
	err = j.host.Upload(ctx, host.Upload{
		Pool: s.Pool, Name: s.Name, Image: from, Head: func() []byte { return head }, BeforeCommit: j.checkMine, Report: report,
		Over: s.Content.layer.over,
	})
	cancel()
	_ = from.CloseWithError(errors.Join(err, context.Canceled))
	<-written // the next layer goes on where this one has ended
	if err != nil {
		return v, err
	}
	return j.check(ctx, s, image.Header{Format: "qcow2", Capacity: rootfs.Size})
}

// nameOf is the name of the file of a path; empty for no path.
func nameOf(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(file)
}
