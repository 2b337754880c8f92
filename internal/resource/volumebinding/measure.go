package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// openTime is what storage gets to be opened. Ceph does not refuse a wrong key: whoever has one asks on for five minutes.
const openTime = 30 * time.Second

// isDiskImage tells whether a volume is the disk.img of a filesystem.
func isDiskImage(v volume.Volume) bool { return path.Base(v.Images[0].Name) == "disk.img" }

// prepare makes a disk.img that is to be made, and finds out how large the volume is where nobody says. Ceph is asked in
// any case, on each host that has got a key: when a machine asked with a wrong one it would take minutes to fail. Of a new binding
// the format is looked at, too; later, a guest may have written whatever the volume begins with.
func (r *binding) prepare(ctx context.Context, m model, v *volume.Volume, claimed *int64, fresh []string, isNew bool, diags *diag.Diagnostics) error {
	hosts := v.Images[0].Hosts
	if c := m.claim(ctx, diags); c != nil && c.CreateDiskImage.ValueBool() && claimed != nil {
		h, err := r.backend.Hosts.Host(hosts[0])
		if err == nil {
			err = content.MakeDiskImage(ctx, h, v.Images[0].Name, *claimed)
		}
		if err != nil {
			return fmt.Errorf("the disk.img could not be made: %w", err)
		}
	}
	if auth := v.Images[0].Auth; auth != nil && auth.Type == "ceph" {
		for _, key := range fresh {
			if _, err := r.open(ctx, key, *v, diags); err != nil {
				return err
			}
		}
	}
	if v.Capacity != nil {
		return nil
	}
	found, key, err := r.measure(ctx, *v, hosts, diags)
	if err == nil && isNew {
		err = r.checkFormat(ctx, m, *v, key, found.Head, diags)
	}
	if err == nil {
		v.Capacity, err = capacityAs(v.Images[0].Format, found)
	}
	return err
}

// newImage is how large a claim says a disk.img is that is asked for only now; nil otherwise: one that is missing later is not
// there because nothing is mounted.
func newImage(ctx context.Context, plan, state model, found source.Resolved, diags *diag.Diagnostics) *int64 {
	was, is := state.claim(ctx, diags), plan.claim(ctx, diags)
	if was == nil || is == nil || was.CreateDiskImage.Equal(is.CreateDiskImage) {
		return nil
	}
	return found.Volume.Capacity
}

// measure asks the hosts, one after the other, for the size of a volume; the first that can open it tells.
func (r *binding) measure(ctx context.Context, v volume.Volume, hosts []string, diags *diag.Diagnostics) (found host.Measured, key string, err error) {
	var failed []error
	for _, key := range hosts {
		found, err := r.open(ctx, key, v, diags)
		if err == nil {
			return found, key, nil
		}
		failed = append(failed, err)
	}
	err = fmt.Errorf("no host can open the volume: %w", errors.Join(failed...))
	if isDiskImage(v) {
		err = fmt.Errorf("%w\n\nIf there is no disk.img on the volume yet, set create_disk_image, or put one there", err)
	}
	return found, "", err
}

// open has a host open the volume, as raw, and tells its size and what it begins with, where libvirt reads that.
func (r *binding) open(ctx context.Context, key string, v volume.Volume, diags *diag.Diagnostics) (found host.Measured, err error) {
	h, err := r.backend.Hosts.Host(key)
	if err != nil {
		return found, err
	}
	if err := checkRegular(ctx, h, asRaw(v), diags); err != nil { // its format is looked at with what the user asked for
		return found, err
	}
	xml, err := domainxml.DiskXML(asRaw(v))
	if err != nil {
		return found, err
	}
	head := uint32(image.HeadSize)
	if v.Images[0].Type == "network" {
		head = 0
	}
	patient, cancel := context.WithTimeoutCause(ctx, openTime, fmt.Errorf("no answer within %s", openTime))
	defer cancel()
	if found, err = h.Measure(patient, xml, head); err == nil {
		return found, nil
	}
	top := v.Images[0]
	err = fmt.Errorf("host %s can't open %s%s: %w", key, top.Name, at(top), err)
	if top.Auth != nil {
		err = fmt.Errorf("%w\n\nIt asks as the user %s with the libvirt secret %s. Check that user and the password or key, where you took "+
			"them from", err, top.Auth.Username, top.Auth.SecretUUID)
	}
	return found, err
}

// at names the servers of an image.
func at(i volume.Image) (text string) {
	for n, s := range i.Servers {
		text += []string{" at ", ", "}[min(n, 1)] + s.Host + s.Socket
		if s.Port != nil {
			text += fmt.Sprintf(":%d", *s.Port)
		}
	}
	return text
}
