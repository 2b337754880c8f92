package content

import (
	"context"
	"errors"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// What is read of a volume that is filled: whether it has content before, and whether it has the right one afterwards.

// endSize is how many bytes at both ends of a volume show whether it has content.
const endSize = 1 << 20

// checkBlank is ErrNotBlank if an end of the volume has content.
func (w *fill) checkBlank(ctx context.Context) error {
	n := min(endSize, *w.Target.Capacity)
	first, err := w.read(ctx, 0, n)
	if err != nil {
		return err
	}
	last, err := w.read(ctx, *w.Target.Capacity-n, n)
	if err != nil {
		return err
	}
	if seen := image.Describe(first, last); seen != "" {
		return fmt.Errorf("%w: %s", ErrNotBlank, seen)
	}
	return nil
}

// read reads n bytes of the volume: QEMU copies them into a file, because libvirt reads only files and devices of its host.
func (w *fill) read(ctx context.Context, offset, n int64) (part []byte, err error) {
	from, err := domainxml.PartXML(w.Target, offset, n)
	if err != nil {
		return nil, err
	}
	err = w.inFile(ctx, n, func(to string) error { return w.host.CopyDisk(ctx, from, to) }, func(pool, name string) error {
		part, err = w.host.VolumeHead(ctx, pool, name, uint64(n))
		return err
	})
	return part, err
}

// verify compares the volume with the image that was copied onto it.
func (w *fill) verify(ctx context.Context, report func(host.Progress)) error {
	written, err := domainxml.PartXML(w.Target, 0, *w.Target.Capacity)
	if err != nil {
		return err
	}
	var digests []string
	for _, read := range []func(to string) error{
		func(to string) error { return w.host.CopyOnto(ctx, w.journal.UUID, domainxml.CopyTarget, to, report) },
		func(to string) error { return w.host.CopyDisk(ctx, written, to) },
	} {
		err := w.inFile(ctx, *w.Target.Capacity, read, func(pool, name string) error {
			digest, err := w.host.VolumeDigest(ctx, pool, name)
			digests = append(digests, digest)
			return err
		})
		if err != nil {
			return err
		}
	}
	if digests[0] != digests[1] {
		return fmt.Errorf("what was read back is not what was written: its digest is %s, and should be %s", digests[1], digests[0])
	}
	return nil
}

// inFile has a file of n bytes filled, and used.
func (w *fill) inFile(ctx context.Context, n int64, fill func(diskXML string) error, use func(pool, name string) error) (err error) {
	pool, name := w.Source.Pool, w.journal.Note.Volume+readSuffix
	err = w.host.CreateVolume(ctx, pool, libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{
			Value: uint64(n),
			Unit:  "bytes",
		}, Allocation: &libvirtxml.StorageVolumeSize{Unit: "bytes"},
		Target: &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := revert.Context(ctx)
		defer cancel()
		err = errors.Join(err, w.host.DeleteVolume(ctx, pool, name))
	}()
	file, err := w.host.Volume(ctx, pool, name)
	if err != nil {
		return err
	}
	to, err := domainxml.WritableDiskXML(volume.Volume{Images: []volume.Image{{Type: "file", Format: "raw", Name: file.Path}}})
	if err == nil {
		err = fill(to)
	}
	if err != nil {
		return err
	}
	return use(pool, name)
}
