package content

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// sector is the unit of the size of a raw image, for a guest, in bytes.
const sector = 512

// LargeSector is that of storage with 4 KiB sectors, where QEMU writes to no other length: raw content is padded to it.
const LargeSector = 4096

// upload creates the volume with its content. conclude is called at the end, while the journal's domain is still active, so that no other
// process takes the volume for a partial one.
func (j *journal) upload(ctx context.Context, s Spec, report func(host.Progress),
	conclude func(context.Context, host.StorageVolume) error,
) (host.StorageVolume, error) {
	made, err := j.writeContent(ctx, s, report)
	if err == nil && j.Note.Creator == "" { // or its journal can't be undefined
		err = j.checkMine(ctx)
	}
	if err == nil {
		err = conclude(ctx, made)
	}
	if err == nil {
		_ = j.stop(ctx) // on an error, libvirtd ends the domain together with the connection
	}
	return made, err
}

func (j *journal) writeContent(ctx context.Context, s Spec, report func(host.Progress)) (v host.StorageVolume, err error) {
	if s.Content.layer != nil {
		return j.writeLayer(ctx, s, report)
	}
	content, err := s.Content.Open(ctx)
	if err != nil {
		return v, err
	}
	defer func() { _ = content.Close() }()
	buffered := bufio.NewReaderSize(content, image.HeadSize)
	head, err := buffered.Peek(image.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return v, err
	}
	head = bytes.Clone(head) // the buffer is reused
	is, err := image.Probe(head)
	if err == nil {
		err = s.Fits(is, 0)
	}
	if err == nil {
		err = j.makeEmpty(ctx, s)
	}
	if err != nil {
		return v, err
	}
	up := host.Upload{
		Pool: s.Pool, Name: s.Name, Image: image.Bounded(buffered, head), BeforeCommit: j.checkMine,
		Check:  func(length int64, at io.ReaderAt) error { return image.CheckWhole(head, length, at) },
		Report: func(p host.Progress) { report(estimate(p, content)) },
	}
	if is.Format == "raw" {
		up.Image = &padded{from: &upTo{from: buffered, most: s.Capacity, tooSmall: s.tooSmall()}, most: s.Capacity}
		up.Size = func(length int64) int64 { return max(s.Capacity, length) }
	}
	if err := j.host.Upload(ctx, up); err != nil {
		return v, err
	}
	return j.check(ctx, s, is)
}

// Fits refuses an image that does not match the specification. length is that of its file in bytes, unpacked; 0 if it is not known.
func (s Spec) Fits(is image.Header, length int64) error {
	if s.Format != "" && s.Format != is.Format {
		return fmt.Errorf("the image is %s, not %s. Leave format out", is.Format, s.Format)
	}
	return s.holds("the image", cmp.Or(is.Capacity, length))
}

// holds refuses content that has more bytes than the volume.
func (s Spec) holds(what string, bytes int64) error {
	if s.Capacity == 0 || bytes <= s.Capacity {
		return nil
	}
	return fmt.Errorf("%s has %s, and %s", what, binarySize(bytes), s.tooSmall())
}

// tooSmall says what is too small for its content, and the remedy.
func (s Spec) tooSmall() string {
	if s.IsFixed {
		return fmt.Sprintf("the volume %s. Use a larger one", binarySize(s.Capacity))
	}
	return fmt.Sprintf("the disk is to have %s. Set a size that is at least as large, or leave it out", binarySize(s.Capacity))
}

// makeEmpty creates the volume for an upload. Only a file grows with the written data.
func (j *journal) makeEmpty(ctx context.Context, s Spec) error {
	err := j.host.CreateVolume(ctx, s.Pool, libvirtxml.StorageVolume{
		Name: s.Name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1, Unit: "bytes"},
		Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
	if err != nil {
		return err
	}
	if s.Content.layer != nil && s.Content.layer.below != "" {
		return nil // that is a file, and an empty file without a journal is removed by the next creation
	}
	if err := j.checkMine(ctx); errors.Is(err, errLost) {
		// Another process may have begun it before, and would take this for a finished image.
		return errors.Join(err, ignoreNotFound(j.host.DeleteVolume(context.WithoutCancel(ctx), s.Pool, s.Name)))
	}
	v, err := j.host.Volume(ctx, s.Pool, s.Name)
	if err == nil && v.Type != "file" {
		return fmt.Errorf("the storage pool %s has no files (its volumes are of the type %s), so no image can be put there. Use a usage "+
			"type whose pool is a folder", s.Pool, v.Type)
	}
	return err
}

// check verifies that the host sees the image of the header, and grows a qcow2 image to the specified size.
func (j *journal) check(ctx context.Context, s Spec, is image.Header) (v host.StorageVolume, err error) {
	if err := j.host.Rescan(ctx, s.Pool); err != nil { // libvirt still takes it for raw
		return v, err
	}
	if v, err = j.host.Volume(ctx, s.Pool, s.Name); err != nil {
		return v, err
	}
	below := ""
	if s.Content.layer != nil {
		below = s.Content.layer.below
	}
	if v = asProbed(v); v.Format != is.Format || nameOf(v.Backing) != below || is.Capacity != 0 && v.Capacity != is.Capacity {
		return v, fmt.Errorf("%w: the host takes the image for %s of %d bytes over %q, but its head says %s of %d bytes over %q",
			image.ErrUntrusted,
			v.Format, v.Capacity, v.Backing, is.Format, is.Capacity, below)
	}
	if s.Capacity > v.Capacity {
		err = j.host.ResizeVolume(ctx, s.Pool, s.Name, s.Capacity)
		v.Capacity = s.Capacity
	}
	return v, err
}

// asProbed is a volume with the format of image.Probe: libvirt detects more formats, and has its own one for a raw image of a CD-ROM, for
// example.
func asProbed(v host.StorageVolume) host.StorageVolume {
	if v.Format != "qcow2" {
		v.Format, v.Capacity = "raw", cmp.Or(v.Physical, v.Capacity)
	}
	return v
}

// padded ends with zeros up to a whole large sector, or up to most, unless that is 0. libvirt does not grow a file to less than its file
// system has allocated for it.
type padded struct {
	from io.Reader
	most int64
	read int64
}

func (r *padded) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.read += int64(n)
	end := (r.read + LargeSector - 1) / LargeSector * LargeSector
	if r.most > 0 {
		end = min(end, r.most)
	}
	if err == io.EOF && r.read < end { // an error that wraps it is no end
		r.from = io.LimitReader(zeros{}, end-r.read)
		err = nil
	}
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// upTo is an error after limit bytes, unless limit is 0.
type upTo struct {
	from io.Reader
	most int64
	read int64
	// tooSmall is the rest of the error.
	tooSmall string
}

func (r *upTo) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.read += int64(n); r.most > 0 && r.read > r.most {
		return 0, fmt.Errorf("the image has more bytes, and %s", r.tooSmall)
	}
	return n, err
}

// estimate is the progress of an upload of unknown length, by the part of its source that has been read.
func estimate(p host.Progress, content io.Reader) host.Progress {
	source, ok := content.(interface{ Progress() (done, all int64) })
	if !ok {
		return p
	}
	if done, all := source.Progress(); done > 0 && all > 0 {
		p.All = max(p.Done, int64(float64(p.Done)*float64(all)/float64(done)))
	}
	return p
}
