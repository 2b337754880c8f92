package host

import (
	"bytes"
	"context"

	"github.com/digitalocean/go-libvirt"
)

// VolumeHead reads the first n bytes of a volume, fewer of a shorter one. They are read as bytes: nothing that they name is opened.
func (h *Host) VolumeHead(ctx context.Context, pool, name string, n uint64) ([]byte, error) {
	const op = "read the head of volume"
	v, err := onVolume(ctx, h, op, pool, name, func(_ *libvirt.Libvirt, v libvirt.StorageVol) (libvirt.StorageVol, error) { return v, nil })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := h.openStream(ctx)
	if err != nil {
		return nil, h.failed(op, err)
	}
	defer func() { _ = c.Close() }()
	var head bytes.Buffer
	if err := c.Download(&head, v, 0, int64(n)); err != nil {
		return nil, h.failed(op, err)
	}
	return head.Bytes(), nil
}

// IsUnfinished tells whether a volume begins as Upload has it begin until it is whole.
func (h *Host) IsUnfinished(ctx context.Context, pool, name string) (bool, error) {
	const few = 64
	head, err := h.VolumeHead(ctx, pool, name, few)
	return err == nil && bytes.HasPrefix(unfinished, head), err
}
