package host

import (
	"bytes"
	"context"

	"github.com/digitalocean/go-libvirt"
)

// IsUnfinished tells whether a volume begins as Upload has it begin until it is whole.
func (h *Host) IsUnfinished(ctx context.Context, pool, name string) (bool, error) {
	const op, few = "look at the head of volume", 64
	v, err := onVolume(ctx, h, op, pool, name, func(_ *libvirt.Libvirt, v libvirt.StorageVol) (libvirt.StorageVol, error) { return v, nil })
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := h.openStream(ctx)
	if err != nil {
		return false, h.failed(op, err)
	}
	defer func() { _ = c.Close() }()
	var head bytes.Buffer
	if err := c.Download(&head, v, 0, few); err != nil {
		return false, h.failed(op, err)
	}
	return bytes.HasPrefix(unfinished, head.Bytes()), nil
}
