package host

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// giveUpTime is what a machine gets to end that is not wanted any more.
const giveUpTime = 10 * time.Second

// MeasurePrefix starts the names of the machines that Capacity makes. They read nothing but how large an image is.
const MeasurePrefix = "virtclaim-measure-"

// Capacity measures, in bytes, the network image that a <disk> element with the target vda opens: a paused, transient
// machine opens it and dies with this connection. libvirt can't tell the size of an image that nothing has open.
func (h *Host) Capacity(ctx context.Context, diskXML string) (int64, error) {
	id := uuid.New()
	xml := fmt.Sprintf(`<domain type='qemu'>
  <name>%s</name>
  <uuid>%s</uuid>
  <memory unit='MiB'>16</memory>
  <os><type>hvm</type></os>
  <devices>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    %s
  </devices>
</domain>`, MeasurePrefix+hex.EncodeToString(id[:4]), id, diskXML)
	size, err := call(ctx, h, "open the volume to measure it", func(l *libvirt.Libvirt) (int64, error) {
		d, err := l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
		if err != nil {
			return 0, err
		}
		_, size, _, err := l.DomainGetBlockInfo(d, "vda", 0)
		if end := l.DomainDestroy(d); err == nil {
			err = end
		}
		return int64(size), err
	})
	if ctx.Err() != nil {
		err = errors.Join(err, h.giveUp(ctx, id.String()))
	}
	return size, err
}

// giveUp ends a machine that is still about to open its disk: storage that does not answer would keep it for minutes.
func (h *Host) giveUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTime)
	defer cancel()
	err := h.StopCopier(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
