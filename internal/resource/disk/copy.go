package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// prepareMaster checks and measures a master, and sets the check for its writers.
func (r *disk) prepareMaster(ctx context.Context, h *host.Host, on content.Host, spec *content.Spec, diags *diag.Diagnostics) error {
	if err := checkMaster(ctx, h, on, spec, diags); err != nil {
		return fmt.Errorf("the master: %w", err)
	}
	if spec.Capacity == 0 {
		spec.Capacity = *spec.Master.Capacity
	}
	if spec.Capacity < *spec.Master.Capacity {
		return fmt.Errorf("its size is %d bytes, and its master %s has %d. Leave size out to have as many, or ask for more", spec.Capacity,
			spec.Master.Images[0].Name, *spec.Master.Capacity)
	}
	r.admit(h, spec, diags)
	return nil
}

// checkMaster checks and measures a master.
func checkMaster(ctx context.Context, h *host.Host, on content.Host, spec *content.Spec, diags *diag.Diagnostics) error {
	seen, err := content.InspectChain(ctx, on, spec.Master.Images)
	if err != nil {
		return err
	}
	if err := content.RecognizeChain(ctx, on, spec.Master.Images, seen); err != nil {
		return err
	}
	if err := measureMaster(ctx, h, on, spec, diags); err != nil { // with the one look at a file that needs its head
		return err
	}
	return content.CheckMasterRecords(ctx, on, spec.Master.Images)
}

// measureMaster sets the master's capacity to what its storage has. Kubernetes does not compare the capacity of a PersistentVolume with
// that, and a copy that ends earlier than its master is broken.
func measureMaster(ctx context.Context, h *host.Host, on content.Host, spec *content.Spec, diags *diag.Diagnostics) error {
	master := &spec.Master
	top, said := master.Images[0], master.Capacity
	if top.IsDisk() && said != nil {
		return nil
	}
	bytes, err := content.SizeOf(ctx, h, on, *master)
	if errors.Is(err, host.ErrCannotTell) && said != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if said != nil && *said != bytes {
		diags.AddAttributeWarning(sourcePath, "The master's storage has another size", fmt.Sprintf(
			"%s has %d bytes on host %s, and its binding or PersistentVolume says %d. Its storage counts: a new disk without a size of "+
				"its own has %[2]d bytes.",
			top.Name, bytes, h.Key, *said))
	}
	master.Capacity = &bytes
	return nil
}

// admit sets the check for machines and pods that write to the master of a clone. For an overlay it checks only machines, and only if the
// master is a disk or bound read-shared.
func (r *disk) admit(h *host.Host, spec *content.Spec, diags *diag.Diagnostics) {
	m := guard.Master{
		Host: h.Key, Images: spec.Master.Images, Overlay: spec.Mode != volume.Clone,
		Hosts: func(key string) (guard.Waiter, error) { return r.Provider.Hosts.Host(key) },
		All:   guard.HostsOf(r.Provider.Hosts),
	}
	switch {
	case !m.Overlay:
		spec.Precheck = func(ctx context.Context) error {
			if err := m.AwaitQuiet(ctx); err != nil {
				return err
			}
			return r.checkPods(ctx, m.Images, diags)
		}
	case m.Images[0].IsDisk(): // for bound storage the binding's access mode says which machines may write
		m.Images = m.Images[:1]
		spec.Precheck = m.AwaitQuiet
	case m.Images[0].AccessMode == volume.ReadShared:
		spec.Precheck = func(ctx context.Context) error { return checkRead(ctx, h, m.Images[0]) }
	}
}

// checkRead refuses an overlay of read-shared storage while a machine writes to it, as after virsh blockcommit without --base.
func checkRead(ctx context.Context, h *host.Host, top volume.Image) error {
	users, err := guard.Users(ctx, h.Key, h, top)
	for _, u := range users {
		if u.Live && u.Depth == 0 && u.Device.Writes() {
			return fmt.Errorf("%w: domain %s on host %s runs and writes to the master %s, which is bound read-shared: by hand, or "+
				"because an overlay was committed into it (virsh blockcommit without --base). Overlays of it would be a mix of both",
				guard.ErrInUse, u.Domain, u.Host, top.Name)
		}
	}
	return err
}

// progress logs the progress of a copy or an upload.
func progress(ctx context.Context, plan model) func(host.Progress) {
	started := time.Now()
	return func(p host.Progress) {
		fields := map[string]any{"host": plan.Host.ValueString(), "disk": plan.Name.ValueString(), "bytes": p.Done}
		if p.All > 0 {
			fields["of_bytes"] = p.All
		}
		if rate := float64(p.Done) / time.Since(started).Seconds(); rate > 0 {
			fields["bytes_per_second"] = int64(rate)
			if p.All > 0 {
				fields["remaining"] = (time.Duration(float64(p.All-p.Done)/rate) * time.Second).String()
			}
		}
		tflog.Info(ctx, "Filling the disk", fields)
	}
}

// grow resizes the disk to the planned size: through the machine that runs on it, whose guest sees that at once, or through the pool of its
// own host.
func (r *disk) grow(ctx context.Context, h *host.Host, plan, state model, diags *diag.Diagnostics) error {
	size := plan.grownSize(state)
	own, known := state.made(ctx, diags)
	if size == 0 || !known {
		return nil
	}
	top, hasSize := own.Images[0], own.Capacity != nil && size <= *own.Capacity
	all, err := r.everywhere(ctx, h, plan, top)
	if err != nil {
		return err
	}
	for _, on := range all {
		if err := guard.External(on.Key, on.domains, top); err != nil {
			if hasSize {
				return nil
			}
			return err
		}
	}
	users, err := usersOn(ctx, all, top)
	if err != nil {
		return err
	}
	users = slices.DeleteFunc(users, func(u guard.Use) bool { // except for those that run with a deleted file
		return u.Live && u.Depth == 0 && volume.IsRemade(u.Image(), top)
	})
	is, err := h.Volume(ctx, plan.Pool.ValueString(), state.Name.ValueString())
	if errors.Is(err, host.ErrUndescribed) && hasSize {
		return nil // other changes need no description
	}
	if n := slices.IndexFunc(users, func(u guard.Use) bool { return u.Live && !onlyReads(u) }); n >= 0 {
		return growThrough(ctx, hostOf(all, users[n]).Host, users[n], top, is, err, size, hasSize)
	}
	if err != nil {
		return err
	}
	if capacityAs(top.Format, is) >= size { // never shrink a disk that was grown outside of Terraform
		return nil
	}
	if err := guard.HostsOf(r.Provider.Hosts).CheckUses(ctx, users); err != nil {
		return err
	}
	if n := slices.IndexFunc(users, onlyReads); n >= 0 {
		return fmt.Errorf("%w: domain %s runs on an overlay of it. Stop that while the disk grows", guard.ErrInUse, users[n].Domain)
	}
	if err := checkStored(ctx, h, is, own, all[0].domains); err != nil {
		return err
	}
	return resize(ctx, h, is, own, size)
}

// onlyReads reports whether a domain runs on an overlay of the disk.
func onlyReads(u guard.Use) bool { return u.Live && (u.Depth > 0 || u.Device.Ephemeral) }

// growThrough grows a disk through the domain that runs on it, also if its volume is gone. failed is the error of looking for the volume;
// what the domain has open is checked before that counts.
func growThrough(ctx context.Context, h *host.Host, u guard.Use, top volume.Image, is host.StorageVolume, failed error, size int64,
	hasSize bool,
) error {
	if !hasSize {
		if err := checkGuest(ctx, h, u, top); err != nil {
			return err
		}
	}
	if failed == nil {
		failed = content.NoteGrowth(ctx, h, is, top, size)
	}
	if failed != nil && !errors.Is(failed, host.ErrNotFound) {
		return failed
	}
	return h.GrowDevice(ctx, u.UUID, u.Device.Target, size)
}

// checkStored refuses to grow a disk whose chain is not the recorded one, or that a domain writes to.
func checkStored(ctx context.Context, h *host.Host, is host.StorageVolume, own volume.Volume, domains []domainxml.Definitions) error {
	seen, err := content.See(ctx, h, is, own.Images[0].Format)
	if err != nil {
		return err
	}
	below, err := content.InspectChain(ctx, h, own.Images[1:])
	if err != nil {
		return err
	}
	// QEMU would open what a header names.
	if err := content.RecognizeChain(ctx, h, own.Images, append([]*content.Seen{seen}, below...)); err != nil {
		return err
	}
	if err := content.Recheck(ctx, h, own.Images); err != nil { // a pod may have put something in place of a claim's file
		return err
	}
	return content.CheckWriter(ctx, h, is.Pool, own.Images[0].Name, content.OpenedBy(domains))
}

// checkGuest refuses to grow a disk through a running domain that has something else open: the file in another format, or a file that was
// deleted or replaced.
func checkGuest(ctx context.Context, h *host.Host, u guard.Use, top volume.Image) error {
	if is := u.Image().Format; is != top.Format {
		return fmt.Errorf("%w: domain %s has it open as %s, and it is %s: what the domain would grow is the file. Take it out of that "+
			"domain first (virsh detach-disk)", guard.ErrInUse, u.Domain, is, top.Format)
	}
	if is, err := content.Inspect(ctx, h, top); err != nil || is.ProvesItself(top) {
		return err
	}
	if err := guard.CheckSoleWriter(ctx, h.Key, h, top, u.UUID); err != nil {
		return err
	}
	if open, _, err := content.HasOpen(ctx, h, top); open || err != nil {
		return err
	}
	return fmt.Errorf("%w: domain %s writes to a file that had the name %s and was deleted or replaced by hand. To save what its guest "+
		"has written: %s. To go on without it, shut that machine down", guard.ErrInUse, u.Domain, top.Name, guard.Rescue(u.Domain,
		u.Device.Target))
}

// resize grows a disk that no machine runs on. It passes QEMU the format and the backing chain, because the disk's header may have been
// written by a guest.
func resize(ctx context.Context, h *host.Host, is host.StorageVolume, own volume.Volume, size int64) error {
	if is.Type != "file" {
		return h.ResizeVolume(ctx, is.Pool, is.Name, size)
	}
	xml, err := domainxml.WritableDiskXML(own)
	if err != nil {
		return err
	}
	if err := content.NoteGrowth(ctx, h, is, own.Images[0], size); err != nil {
		return err
	}
	return h.Resize(ctx, xml, size)
}
