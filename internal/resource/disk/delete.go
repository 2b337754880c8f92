package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Delete detaches the disk from machines, and deletes the volume.
func (r *disk) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer r.Provider.Destroys()()
	var state model
	ctx, cancel, ok := r.BeginDelete(ctx, req, &state, deleteTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	own, known := state.made(ctx, &resp.Diagnostics)
	former := loadOwner(ctx, r.Provider.Owner, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !known {
		return
	}
	if err := r.endMove(ctx, &state, &own, req.Private, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, state, "The disk could not be removed", err)
		return
	}
	h := r.host(state, &resp.Diagnostics)
	if h == nil {
		return
	}
	if err := r.delete(ctx, h, state, own, []string{r.Provider.Owner, former}, req.Private, &resp.Diagnostics); err != nil {
		addError(&resp.Diagnostics, state, "The disk could not be removed", ofMissingPool(err))
	}
}

// delete detaches and deletes the volume, and what the host has because of it.
func (r *disk) delete(
	ctx context.Context, h *host.Host, state model, own volume.Volume, owners []string, private tfvalue.PrivateReader,
	diags *diag.Diagnostics,
) error {
	top, pool, name := own.Images[0], state.Pool.ValueString(), state.Name.ValueString()
	is, all, err := r.removable(ctx, h, state, top, diags)
	isReplaced := errors.Is(err, content.ErrReplaced)
	isMissing := errors.Is(err, host.ErrNotFound) && !isReplaced
	if isMissing {
		if leavesUnmounted(ctx, h, state, private, diags) {
			return nil
		}
		err = refuseMissing(ctx, h, top)
	}
	if err != nil && !isReplaced {
		return err
	}
	if !isReplaced { // the name of a missing volume may still be in use
		if err := r.detach(ctx, all, top, owners, func() ([]at, error) {
			_, all, err := r.removable(ctx, h, state, top, diags)
			return all, err
		}); err != nil {
			return err
		}
	}
	if isMissing || isReplaced {
		err = content.Disown(ctx, h, pool, name, top.Generation)
	} else {
		err = r.Provider.Content.Remove(ctx, h.Key, h, pool, name, top.Generation)
	}
	if err != nil {
		return err
	}
	bases := sharedBases(own)
	if is != nil && content.IsBase(is.Backing) && len(bases) == 0 { // the header of a raw disk may have kept a shared image
		bases = []string{filepath.Base(is.Backing)}
	}
	if len(bases) > 0 {
		// an error keeps the disk in the state, so that the next destroy tries again
		if err := r.Provider.Content.CollectGarbage(ctx, h.Key, h, pool, bases...); err != nil {
			return err
		}
	}
	for _, on := range all { // each host on which a machine had it has a record
		if err := content.ForgetMasterRecord(ctx, on, own.Images); err != nil {
			return err
		}
		if on.Key != h.Key && on.pool != "" {
			_ = on.Rescan(ctx, on.pool) // a deleted file in its list would be in the way of machines
		}
	}
	return nil
}

// removable is the disk's volume on its own host, which no host must have reason to keep, and all its hosts.
func (r *disk) removable(
	ctx context.Context, h *host.Host, m model, top volume.Image, diags *diag.Diagnostics,
) (is *content.Seen, all []at, err error) {
	if all, err = r.everywhere(ctx, h, m, top); err != nil {
		return nil, nil, err
	}
	for _, on := range all[1:] {
		if on.pool == "" {
			continue
		}
		// A host that does not see the file any more has no overlays of it.
		if _, err := removableOn(ctx, on, m.Name.ValueString(), top, diags); err != nil && !errors.Is(err, host.ErrNotFound) {
			return nil, nil, fmt.Errorf("host %s: %w", on.Key, err)
		}
	}
	is, err = removableOn(ctx, all[0], m.Name.ValueString(), top, diags)
	return is, all, err
}

// removableOn is content.Removable, after what libvirt has left of ephemeral disks is removed.
func removableOn(ctx context.Context, on at, name string, top volume.Image, diags *diag.Diagnostics) (is *content.Seen, err error) {
	is, err = content.Removable(ctx, on, on.domains, on.pool, name, top.Format, top.Generation)
	if !errors.Is(err, content.ErrBacking) {
		return is, err
	}
	if len(top.Hosts) == 1 { // a machine of another host may run on such an overlay
		removed, failed := content.RemoveTransients(ctx, on, on.pool, top.Name, "")
		if failed == nil && len(removed) > 0 {
			diags.AddWarning("What guests had written to an ephemeral disk was removed", fmt.Sprintf(
				"libvirt had left %s on host %s, as when it ends together with QEMU.", strings.Join(removed, ", "), on.Key))
			is, err = content.Removable(ctx, on, on.domains, on.pool, name, top.Format, top.Generation)
		}
	}
	if errors.Is(err, content.ErrBacking) {
		// If a machine of another owner writes to the disk, that is the better error than the advice to remove the overlay.
		err = cmp.Or(guard.External(on.Key, on.domains, top), err)
	}
	return is, err
}

// detach unplugs a disk from its machines. It is an error if one of them was migrated to another host outside of Terraform. Since guests
// are waited for, the disk is looked at again after that.
func (r *disk) detach(ctx context.Context, all []at, top volume.Image, owners []string, again func() ([]at, error)) error {
	users, err := usersOn(ctx, all, top)
	if err == nil && slices.ContainsFunc(users, guard.Use.IsOfMove) {
		users = slices.DeleteFunc(users, guard.Use.IsOfMove)
		err = r.giveUp(ctx, all[0], top)
	}
	if err == nil {
		err = guard.HostsOf(r.Provider.Hosts).CheckUses(ctx, users)
	}
	if err != nil || len(users) == 0 {
		return err
	}
	defer tfvalue.Progress(ctx, "Waiting for guests to acknowledge the unplug", map[string]any{"host": all[0].Key, "disk": top.Name})()
	hosts := map[string]guard.Host{}
	for _, on := range all {
		hosts[on.Key] = on
	}
	err = guard.Detach(ctx, hosts, top, owners, users, func(u guard.Use) (err error) {
		if u.Live {
			err = content.CheckOpenMasters(ctx, hostOf(all, u), u.Device.Volume.Images)
		}
		if errors.Is(err, content.ErrMasterChanged) {
			err = guard.ExplainMaster(u.Domain, u.Device, err)
		}
		return err
	})
	if err == nil {
		all, err = again()
	}
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return err
	}
	if users, err = usersOn(ctx, all, top); err == nil && len(users) > 0 {
		err = fmt.Errorf("%w: domain %s on host %s has got it meanwhile. Apply again", guard.ErrInUse, users[0].Domain, users[0].Host)
	}
	return err
}

// giveUp removes what an interrupted copy to another host has left of a disk that is removed.
func (r *disk) giveUp(ctx context.Context, on at, top volume.Image) error {
	return r.Provider.Mover().GiveUp(ctx, content.Former{Host: on.Key, Pool: on.pool}, filepath.Base(top.Name), top)
}

// sharedBases are the names of the disk's shared images, the lowest one first. Those below another disk are that one's.
func sharedBases(own volume.Volume) (names []string) {
	for _, i := range own.Images[1:] {
		if !content.IsBase(i.Name) {
			break
		}
		names = slices.Insert(names, 0, filepath.Base(i.Name))
	}
	return names
}
