package host

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

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
	return call(ctx, h, "open the volume to measure it", func(l *libvirt.Libvirt) (int64, error) {
		d, err := l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
		if err != nil {
			return 0, err
		}
		_, _, size, err := l.DomainGetBlockInfo(d, "vda", 0)
		if end := l.DomainDestroy(d); err == nil {
			err = end
		}
		return int64(size), err
	})
}
