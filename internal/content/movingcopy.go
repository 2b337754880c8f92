package content

import (
	"context"
	"errors"
	"fmt"
	"path"

	"libvirt.org/go/libvirtxml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Bring copies the content of a disk that moves to the host of that key. No domain may write to the former volume meanwhile, which the
// caller sees to; CheckBrought tells whether one has. What was copied before is copied again.
func (m Mover) Bring(ctx context.Context, key string, i volume.Image, report func(host.Progress)) (brought string, err error) {
	d, err := m.must(ctx, key, i)
	if err != nil {
		return "", err
	}
	return d.bring(ctx, "", report)
}

// CheckBrought refuses a disk that was written to on its former host since Bring, which has returned the same then.
func (m Mover) CheckBrought(ctx context.Context, key string, i volume.Image, brought string) error {
	d, err := m.must(ctx, key, i)
	if err != nil {
		return err
	}
	return d.checkSame(ctx, brought)
}

func (d *moving) checkSame(ctx context.Context, before string) error {
	now, err := d.former(ctx)
	if err == nil && now.written() != before {
		err = fmt.Errorf("disk %s was written to on host %s while it was copied. Apply again, and do not start its machine meanwhile",
			d.Note.Volume, d.Note.From)
	}
	return err
}

// written changes with each write to a volume.
func (s *Seen) written() string { return fmt.Sprintf("%s %d", s.Modified, s.Physical) }

// bring is Bring; the new domain of that UUID may be defined with the disk already.
func (d *moving) bring(ctx context.Context, of string, report func(host.Progress)) (brought string, err error) {
	if d.Note.Phase == came {
		return "", ErrCame
	}
	if user, err := d.userThere(ctx, of); err != nil || user != "" {
		return "", errors.Join(err, d.errHas(user, d.to.Key))
	}
	seen, err := d.former(ctx)
	if err != nil {
		return "", err
	}
	if err := d.empty(ctx); err != nil {
		return "", err
	}
	pool, name := d.Note.Pool, d.Note.Volume
	err = d.from.CopyVolumeTo(ctx, d.to, host.VolumeCopy{
		Pool: d.Note.FromPool, Name: name, ToPool: pool, ToName: name, Report: report, BeforeCommit: d.checkThere,
	})
	if err == nil {
		err = d.adapt(ctx)
	}
	if err == nil {
		err = d.checkSame(ctx, seen.written())
	}
	return seen.written(), err
}

// checkThere is an error if the journal is gone.
func (d *moving) checkThere(ctx context.Context) error {
	_, err := d.to.State(ctx, d.UUID)
	return err
}

// adapt names the shared image of this host in the copied header, and assigns the identity.
func (d *moving) adapt(ctx context.Context) error {
	pool, name := d.Note.Pool, d.Note.Volume
	if n := len(d.Note.Bases); n > 0 {
		head, err := d.to.VolumeHead(ctx, pool, name, image.HeadSize)
		if err == nil {
			head, err = image.WithBacking(head, path.Join(path.Dir(d.image.Name), d.Note.Bases[n-1]))
		}
		if err == nil {
			err = d.to.WriteVolumeHead(ctx, pool, name, head)
		}
		if err != nil {
			return err
		}
	}
	v, err := d.to.Volume(ctx, pool, name)
	if err = Described(err, d.image.Format); err != nil {
		return err
	}
	v.Format = d.image.Format
	if err := identify(ctx, d.to, v, d.Note.Generation); err != nil {
		return err
	}
	xml, err := domainxml.WritableDiskXML(volume.Volume{Images: []volume.Image{d.image}})
	if err != nil {
		return err
	}
	return d.to.Flush(ctx, xml) // the former one is deleted after this
}

// empty replaces the prepared volume by one that a copy can fill.
func (d *moving) empty(ctx context.Context) error {
	pool, name := d.Note.Pool, d.Note.Volume
	if err := ignoreNotFound(d.to.DeleteVolume(ctx, pool, name)); err != nil {
		return err
	}
	return d.to.CreateVolume(ctx, pool, libvirtxml.StorageVolume{
		Name: name, Capacity: &libvirtxml.StorageVolumeSize{Value: 1, Unit: "bytes"},
		Allocation: &libvirtxml.StorageVolumeSize{Value: 0, Unit: "bytes"},
		Target:     &libvirtxml.StorageVolumeTarget{Format: &libvirtxml.StorageVolumeTargetFormat{Type: "raw"}},
	}, false)
}
