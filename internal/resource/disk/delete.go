package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Delete detaches the disk from machines, and deletes the volume.
func (r *disk) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer r.backend.Destroys()()
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	timeout, diags := state.Timeouts.Delete(ctx, deleteTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	h := r.host(state, &resp.Diagnostics)
	own, known := state.made(ctx, &resp.Diagnostics)
	former, diags := loadOwner(ctx, r.backend.Owner, req.Private)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !known {
		return
	}
	key, top := state.Host.ValueString(), own.Images[0]
	pool, name := state.Pool.ValueString(), state.Name.ValueString()
	err := content.Removable(ctx, h, pool, name, top.Format, top.Generation)
	if errors.Is(err, content.ErrBacking) {
		if removed, failed := content.RemoveTransients(ctx, h, top.Name, ""); failed == nil && len(removed) > 0 {
			resp.Diagnostics.AddWarning("What guests had written to an ephemeral disk was removed", fmt.Sprintf(
				"libvirt had left %s on host %s, as when it ends together with QEMU.", strings.Join(removed, ", "), key))
			err = content.Removable(ctx, h, pool, name, top.Format, top.Generation)
		}
	}
	if errors.Is(err, content.ErrBacking) {
		// If a machine of another owner writes to the disk, that is the better error than the advice to remove the overlay.
		err = cmp.Or(guard.External(ctx, key, h, top), err)
	}
	if errors.Is(err, host.ErrNotFound) && !errors.Is(err, content.ErrReplaced) {
		if leavesUnmounted(ctx, h, state, req.Private, &resp.Diagnostics) {
			return
		}
		err = cmp.Or(refuseMissing(ctx, h, top), err)
	}
	pinned := ""
	if err == nil {
		pinned, err = pinnedBase(ctx, h, state, top)
	}
	if err == nil || errors.Is(err, host.ErrNotFound) && !errors.Is(err, content.ErrReplaced) { // the name of a missing volume may still be in use
		err = r.detach(ctx, h, top, []string{r.backend.Owner, former})
	}
	if base := sharedBase(own); base != "" && (err == nil || errors.Is(err, content.ErrReplaced)) {
		err = cmp.Or(content.NoteDeletion(ctx, h, pool, name, top.Generation), err)
	}
	if err == nil || errors.Is(err, content.ErrReplaced) {
		err = r.remove(ctx, h, pool, name, top)
	}
	if err == nil {
		err = r.collect(ctx, h, state, &resp.Diagnostics)
	}
	if err == nil {
		err = content.ForgetMasterRecord(ctx, h, own.Images)
	}
	if err == nil && pinned != "" {
		err = r.backend.Content.CollectGarbage(ctx, key, h, state.Pool.ValueString(), pinned)
	}
	if err != nil {
		addError(&resp.Diagnostics, state, "The disk could not be removed", ofMissingPool(err))
	}
}

// remove deletes the volume. If that fails, and the volume still exists, the record of the deletion is dropped.
func (r *disk) remove(ctx context.Context, h *host.Host, pool, name string, top volume.Image) error {
	err := r.backend.Content.Remove(ctx, h.Key, h, pool, name, top.Format, top.Generation)
	if err == nil {
		return nil
	}
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	if v, lookup := h.Volume(ctx, pool, name); lookup == nil && content.Recognize(ctx, h, v, top.Format, top.Generation) == nil {
		return errors.Join(err, content.ForgetDeletion(ctx, h, pool, top.Generation))
	}
	return err
}

// detach unplugs a disk from its machines. It is an error if one of them was migrated by hand.
func (r *disk) detach(ctx context.Context, h *host.Host, top volume.Image, owners []string) error {
	users, err := guard.Users(ctx, h.Key, h, top)
	if err == nil {
		err = guard.HostsOf(r.backend.Hosts).CheckUses(ctx, users)
	}
	if err != nil {
		return err
	}
	defer tfvalue.Progress(ctx, "Waiting for guests to acknowledge the unplug", map[string]any{"host": h.Key, "disk": top.Name})()
	return guard.Detach(ctx, map[string]guard.Host{h.Key: h}, top, owners, func(u guard.Use) (independent bool, err error) {
		if u.Live {
			err = content.CheckOpenMasters(ctx, h, u.Device.Volume.Images)
		}
		if errors.Is(err, content.ErrMasterChanged) {
			err = guard.ExplainMaster(u.Domain, u.Device, err)
		}
		return false, err
	})
}

// collect deletes the shared image of a deleted disk if no other disk needs it. An error keeps the disk in the state, so that the next
// destroy tries again.
func (r *disk) collect(ctx context.Context, h *host.Host, state model, diags *diag.Diagnostics) error {
	own, known := state.made(ctx, diags)
	base := sharedBase(own)
	if !known || base == "" {
		return nil
	}
	pool := state.Pool.ValueString()
	if err := r.backend.Content.CollectGarbage(ctx, state.Host.ValueString(), h, pool, base); err != nil {
		return err
	}
	return content.ForgetDeletion(ctx, h, pool, own.Images[0].Generation)
}

// sharedBase is the name of the disk's shared image; empty if it has none.
func sharedBase(own volume.Volume) string {
	if len(own.Images) < 2 || !content.IsBase(own.Images[1].Name) {
		return ""
	}
	return filepath.Base(own.Images[1].Name)
}

// pinnedBase is the shared image that the header of a raw disk names: a guest wrote that header, but while no machine had the disk that
// could not be known, and the image was kept.
func pinnedBase(ctx context.Context, h *host.Host, state model, top volume.Image) (string, error) {
	if top.Format != "raw" {
		return "", nil
	}
	v, err := h.Volume(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if errors.Is(err, host.ErrNotFound) {
		return "", nil
	}
	if err = content.Described(err, top.Format); err == nil && v.Undescribed {
		v.Backing, err = content.Named(ctx, h, v)
	}
	if err != nil || !content.IsBase(v.Backing) {
		return "", err
	}
	return filepath.Base(v.Backing), nil
}
