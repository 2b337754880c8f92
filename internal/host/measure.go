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

// Measured is what Measure finds.
type Measured struct {
	// Size is in bytes.
	Size int64
	// Head is what the image begins with.
	Head []byte
}

// Capacity is the size that Measure finds.
func (h *Host) Capacity(ctx context.Context, diskXML string) (int64, error) {
	found, err := h.Measure(ctx, diskXML, 0)
	return found.Size, err
}

// Measure looks at the image that a <disk> element with the target vda opens: a paused, transient machine opens it and dies with
// this connection. libvirt can't tell the size of an image that nothing has open. head is how many bytes to read, at most; libvirt
// reads only files and devices of its host.
func (h *Host) Measure(ctx context.Context, diskXML string, head uint32) (Measured, error) {
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
	found, err := call(ctx, h, "open the volume to measure it", func(l *libvirt.Libvirt) (Measured, error) {
		d, err := l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
		if err != nil {
			return Measured{}, err
		}
		found, err := measured(l, d, head)
		if end := l.DomainDestroy(d); err == nil {
			err = end
		}
		return found, err
	})
	if ctx.Err() != nil {
		err = errors.Join(err, h.giveUp(ctx, id.String()))
	}
	return found, err
}

func measured(l *libvirt.Libvirt, d libvirt.Domain, head uint32) (found Measured, err error) {
	_, size, physical, err := l.DomainGetBlockInfo(d, "vda", 0)
	found.Size = int64(size)
	if n := min(uint64(head), physical); err == nil && n > 0 { // libvirt refuses to read beyond the end
		found.Head, err = l.DomainBlockPeek(d, "vda", 0, uint32(n), 0)
	}
	return found, err
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
