package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/digitalocean/go-libvirt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host/stream"
)

// VolumeCopy is the copy of a volume's file on another host, byte by byte, whatever its format is.
type VolumeCopy struct {
	// Pool and Name are those of the source, which nothing writes meanwhile.
	Pool, Name string
	// ToPool and ToName are those of the target, which was created for this copy as for an Upload: raw, with a capacity of one byte.
	ToPool, ToName string
	// BeforeCommit is Upload's.
	BeforeCommit func(context.Context) error
	// Report is called every other second with the progress, of what the source's file has allocated. The total is 0 if it is not known.
	Report func(Progress)
}

// errCutShort is the error of a download that libvirt has ended like a complete one.
var errCutShort = errors.New("libvirt has sent another length than the volume has: it could not read all of it, or the volume was changed")

// CopyVolumeTo copies a volume to another host through this process. Holes are not transferred, and stay holes. All of the target is read
// back and compared before its header is written, in whose place it has the marker of an unfinished Upload until then.
//
// After an error the target can't be used any more: another attempt needs a new one.
func (h *Host) CopyVolumeTo(ctx context.Context, to *Host, c VolumeCopy) error {
	op := fmt.Sprintf("copy volume %s in storage pool %s to host %s", c.Name, c.Pool, to.Key)
	allocated, err := h.Allocated(ctx, c.Pool, c.Name)
	if err != nil {
		return err
	}
	conn, err := h.openStream(ctx)
	if err != nil {
		return h.failed(op, err)
	}
	defer func() { _ = conn.Close() }()
	from := &volumeContent{conn: conn, volume: libvirt.StorageVol{Pool: c.Pool, Name: c.Name}, allocated: allocated}
	if from.Holed, err = conn.Read(from.volume, 0, 0); err != nil {
		return h.failed(op, err)
	}
	err = to.Upload(ctx, Upload{
		Pool: c.ToPool, Name: c.ToName, Image: from, Verify: true, BeforeCommit: c.BeforeCommit,
		Report: func(Progress) { c.Report(from.progress()) },
	})
	if from.err != nil { // it is not the target's
		return h.failed(op, from.err)
	}
	return err
}

// Allocated is how many bytes the file of a volume has allocated; 0 if libvirt can't describe it.
func (h *Host) Allocated(ctx context.Context, pool, name string) (int64, error) {
	return onVolume(ctx, h, "look at volume", pool, name, func(l *libvirt.Libvirt, v libvirt.StorageVol) (int64, error) {
		_, _, allocated, err := l.StorageVolGetInfo(v)
		if isUndescribed(err) {
			err = nil
		}
		return int64(allocated), err
	})
}

// volumeContent reads a volume for an Upload.
type volumeContent struct {
	stream.Holed

	conn   *stream.Conn
	volume libvirt.StorageVol
	// allocated is in bytes; 0 if it is not known.
	allocated int64
	length    int64
	// read is length without the holes that were skipped.
	read atomic.Int64
	// err is why reading has failed.
	err error
}

func (c *volumeContent) Read(p []byte) (int, error) {
	n, err := c.Holed.Read(p)
	c.length += int64(n)
	c.read.Add(int64(n))
	if err == io.EOF { //nolint:errorlint // an error that wraps it is no end
		if wrong := c.checkLength(); wrong != nil {
			err = wrong
		}
	}
	if err != io.EOF { //nolint:errorlint // see above
		c.err = err
	}
	return n, err
}

// progress counts holes only as far as they were read.
func (c *volumeContent) progress() Progress {
	p := Progress{Done: c.read.Load(), All: c.allocated}
	if p.All > 0 {
		p.Done = min(p.Done, p.All)
	}
	return p
}

// SkipHole implements stream.Holed.
func (c *volumeContent) SkipHole(unit int64) int64 {
	skipped := c.Holed.SkipHole(unit)
	c.length += skipped
	return skipped
}

// checkLength verifies that the volume has the length that was read. It also works if libvirt can't describe the volume.
func (c *volumeContent) checkLength() error {
	var end bytes.Buffer
	if err := c.conn.Download(&end, c.volume, max(c.length-1, 0), 2); err != nil {
		return err
	}
	if end.Len() != 1 {
		return fmt.Errorf("%w (%d bytes)", errCutShort, c.length)
	}
	return nil
}
