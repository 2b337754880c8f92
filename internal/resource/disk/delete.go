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
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
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

	h := r.host(state, &resp.Diagnostics)
	own, known := state.made(ctx, &resp.Diagnostics)
	former := loadOwner(ctx, r.Provider.Owner, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || !known {
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
	is, domains, err := removable(ctx, h, pool, name, top, diags)
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
		if err := r.detach(ctx, h, domains, top, owners, func() ([]domainxml.Definitions, error) {
			_, domains, err := removable(ctx, h, pool, name, top, diags)
			return domains, err
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
	return content.ForgetMasterRecord(ctx, h, own.Images)
}

// removable is content.Removable, after what libvirt has left of ephemeral disks is removed.
func removable(
	ctx context.Context, h *host.Host, pool, name string, top volume.Image, diags *diag.Diagnostics,
) (is *content.Seen, domains []domainxml.Definitions, err error) {
	if domains, err = guard.List(ctx, h); err != nil {
		return nil, nil, err
	}
	is, err = content.Removable(ctx, h, domains, pool, name, top.Format, top.Generation)
	if !errors.Is(err, content.ErrBacking) {
		return is, domains, err
	}
	if removed, failed := content.RemoveTransients(ctx, h, pool, top.Name, ""); failed == nil && len(removed) > 0 {
		diags.AddWarning("What guests had written to an ephemeral disk was removed", fmt.Sprintf(
			"libvirt had left %s on host %s, as when it ends together with QEMU.", strings.Join(removed, ", "), h.Key))
		is, err = content.Removable(ctx, h, domains, pool, name, top.Format, top.Generation)
	}
	if errors.Is(err, content.ErrBacking) {
		// If a machine of another owner writes to the disk, that is the better error than the advice to remove the overlay.
		err = cmp.Or(guard.External(h.Key, domains, top), err)
	}
	return is, domains, err
}

// detach unplugs a disk from its machines. It is an error if one of them was migrated to another host outside of Terraform. Since guests
// are waited for, the disk is looked at again after that.
func (r *disk) detach(ctx context.Context, h *host.Host, domains []domainxml.Definitions, top volume.Image, owners []string,
	again func() ([]domainxml.Definitions, error),
) error {
	users, err := guard.UsersAmong(ctx, h.Key, h, domains, top)
	if err == nil {
		err = guard.HostsOf(r.Provider.Hosts).CheckUses(ctx, users)
	}
	if err != nil || len(users) == 0 {
		return err
	}
	defer tfvalue.Progress(ctx, "Waiting for guests to acknowledge the unplug", map[string]any{"host": h.Key, "disk": top.Name})()
	err = guard.Detach(ctx, map[string]guard.Host{h.Key: h}, top, owners, users, func(u guard.Use) (err error) {
		if u.Live {
			err = content.CheckOpenMasters(ctx, h, u.Device.Volume.Images)
		}
		if errors.Is(err, content.ErrMasterChanged) {
			err = guard.ExplainMaster(u.Domain, u.Device, err)
		}
		return err
	})
	if err == nil {
		domains, err = again()
	}
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return err
	}
	if users, err = guard.UsersAmong(ctx, h.Key, h, domains, top); err == nil && len(users) > 0 {
		err = fmt.Errorf("%w: domain %s on host %s has got it meanwhile. Apply again", guard.ErrInUse, users[0].Domain, h.Key)
	}
	return err
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
