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

// releaseTimeout is the timeout for ending a domain whose operation was canceled.
const releaseTimeout = 10 * time.Second

// MeasurePrefix is the prefix of the names of the domains of Measure and Resize. No guest runs in them.
const MeasurePrefix = "virtclaim-measure-"

// Measured is the result of Measure.
type Measured struct {
	// Size is in bytes.
	Size int64
	// Head are the first bytes of the image.
	Head []byte
}

// Opens is nil if the host's QEMU can open the disk of a <disk> element with the target vda. Unlike Measure, it does not make libvirtd open
// it.
func (h *Host) Opens(ctx context.Context, diskXML string) error {
	_, err := opened(ctx, h, "open the volume", diskXML,
		func(*libvirt.Libvirt, libvirt.Domain) (struct{}, error) { return struct{}{}, nil })
	return err
}

// Measure returns the size and header of the image of a <disk> element with the target vda, for which it starts a paused domain: libvirt
// reports sizes of open images only. head is how many bytes to read, at most; libvirt reads only files and devices of its host. libvirtd
// opens the path again for that, and would block at a FIFO: use File for files that tenants can replace. Concurrent callers, such as
// overlays of one master, share a domain that starts after they have asked.
func (h *Host) Measure(ctx context.Context, diskXML string, head uint32) (Measured, error) {
	const op = "open the volume to measure it"
	of, _ := h.measures.LoadOrStore(measure{diskXML, head}, &shared[Measured]{})
	found, err := of.(*shared[Measured]).get(ctx, func(ctx context.Context) (Measured, error) {
		return opened(ctx, h, op, diskXML, func(l *libvirt.Libvirt, d libvirt.Domain) (Measured, error) { return measured(l, d, head) })
	})
	if err != nil && ctx.Err() != nil {
		err = h.failed(op, context.Cause(ctx))
	}
	return found, err
}

// measure is what Measure is asked for.
type measure struct {
	disk string
	head uint32
}

// Resize grows the image of a <disk> element with the target vda to a size in bytes, in the element's format: a storage pool would have
// qemu-img detect the format by the header, which a guest may have written.
func (h *Host) Resize(ctx context.Context, diskXML string, bytes int64) error {
	_, err := opened(ctx, h, "open the volume to grow it", diskXML, func(l *libvirt.Libvirt, d libvirt.Domain) (struct{}, error) {
		now, err := measured(l, d, 0)
		if err != nil || now.Size >= bytes { // libvirt would shrink it
			return struct{}{}, err
		}
		return struct{}{}, l.DomainBlockResize(d, "vda", uint64(bytes), libvirt.DomainBlockResizeBytes)
	})
	return err
}

// Flush writes what the host still has of a disk in its memory. libvirt does not do that at the end of an upload, and QEMU does it at its
// end only for a disk to which it has written: so its header is written once more.
func (h *Host) Flush(ctx context.Context, diskXML string) error {
	_, err := opened(ctx, h, "flush the volume", diskXML, func(l *libvirt.Libvirt, d libvirt.Domain) (struct{}, error) {
		now, err := measured(l, d, 0)
		if err == nil {
			err = l.DomainBlockResize(d, "vda", uint64(now.Size), libvirt.DomainBlockResizeBytes)
		}
		return struct{}{}, err
	})
	return err
}

// opened calls use with a paused, transient domain that has opened a disk and ends with this connection.
func opened[T any](ctx context.Context, h *Host, op, diskXML string, use func(*libvirt.Libvirt, libvirt.Domain) (T, error)) (T, error) {
	id := uuid.New()
	xml := diskDomain(MeasurePrefix+hex.EncodeToString(id[:4]), id, diskXML)
	found, err := call(ctx, h, op, func(l *libvirt.Libvirt) (found T, err error) {
		d, err := l.DomainCreateXML(xml, libvirt.DomainStartPaused|libvirt.DomainStartAutodestroy)
		if err != nil {
			return found, err
		}
		found, err = use(l, d)
		if end := l.DomainDestroy(d); err == nil {
			err = end
		}
		return found, err
	})
	if ctx.Err() != nil {
		err = errors.Join(err, h.release(ctx, id.String()))
	}
	return found, err
}

// diskDomain is a domain with a <disk> element and little else.
func diskDomain(name string, id uuid.UUID, diskXML string) string {
	return fmt.Sprintf(`<domain type='qemu'>
  <name>%s</name>
  <uuid>%s</uuid>
  <memory unit='MiB'>16</memory>
  <os><type>hvm</type></os>
  <devices>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    %s
  </devices>
</domain>`, name, id, diskXML)
}

func measured(l *libvirt.Libvirt, d libvirt.Domain, head uint32) (found Measured, err error) {
	_, size, physical, err := l.DomainGetBlockInfo(d, "vda", 0)
	found.Size = int64(size)
	if n := min(uint64(head), physical); err == nil && n > 0 { // libvirt refuses to read beyond the end
		found.Head, err = l.DomainBlockPeek(d, "vda", 0, uint32(n), 0)
	}
	return found, err
}

// release ends a domain that is still opening its disk: unresponsive storage would keep it for minutes.
func (h *Host) release(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := h.StopCopier(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
