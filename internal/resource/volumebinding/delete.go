package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/newer"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Delete needs only the state: a claim that is gone or being deleted must not block it.
func (r *binding) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	ctx, cancel, ok := r.BeginDelete(ctx, req, &state, deleteTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	own := r.readPrivateState(ctx, state, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	defer r.lockDynamic(ctx, state)()
	k, err := r.dynamicVolume(ctx, state, &resp.Diagnostics)
	if addSourceError(&resp.Diagnostics, "The binding could not be removed", sourcePath, err); resp.Diagnostics.HasError() {
		return
	}
	state = state.answered(ctx, own, &resp.Diagnostics)
	hosts := r.present(state, r.hostsOf(ctx, state, own, &resp.Diagnostics), &resp.Diagnostics)
	replaced, err := r.isSuperseded(ctx, state, own, hosts, &resp.Diagnostics)
	var shared bool
	if err == nil && !replaced {
		shared, err = r.detach(ctx, state, own, hosts, guard.HostsOf(r.Provider.Hosts), &resp.Diagnostics)
	}
	if err == nil && !shared && k != nil {
		err = k.remove(ctx, state, own, &resp.Diagnostics)
	}
	heir, known := volume.Image{}, true
	if replaced {
		heir, known = r.Provider.LookupBinding(state.ID.ValueString())
	}
	if err == nil {
		r.forget(ctx, state, hosts, &resp.Diagnostics)
	}
	if err == nil && !shared && known {
		err = r.unattach(ctx, state, r.hostsOf(ctx, state, own, &resp.Diagnostics), heir, &resp.Diagnostics)
	}
	if err != nil {
		resp.Diagnostics.AddError("The binding could not be removed", fmt.Sprintf("%s: %s", state.Name.ValueString(), err))
		return
	}
	if !shared && (k != nil || state.hasCredentials(ctx, &resp.Diagnostics) || !state.isAdopted(own)) {
		if err := r.removeCredentials(ctx, state.ID.ValueString(), own.Nonce, hosts); err != nil {
			resp.Diagnostics.AddError("The binding could not be removed",
				fmt.Sprintf("%s: its credentials could not be removed from every host: %s\n\nApply again when this is mended.",
					state.Name.ValueString(), err))
			return
		}
	}
	how := reservation.End
	if shared {
		how = reservation.Release
	}
	if err := r.release(ctx, state, own, how, &resp.Diagnostics); err != nil {
		resp.Diagnostics.AddError("The binding could not be removed",
			fmt.Sprintf("%s: its claim could not be released: %s\n\nApply again when this is mended.", state.Name.ValueString(), err))
	}
}

// forget unmounts leftover mounts of the storage on hosts. They would keep its filesystem busy.
func (r *binding) forget(ctx context.Context, state model, keys []string, diags *diag.Diagnostics) {
	v, _, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	for _, i := range v.Images {
		for _, key := range keys {
			h, err := r.Provider.Hosts.Host(key)
			if err == nil && i.Type == "file" {
				err = errors.Join(h.EndInspection(ctx, i.Name), h.EndFolder(ctx, filepath.Dir(i.Name)))
			}
			if err != nil {
				diags.AddWarning("A mount may be left", fmt.Sprintf("Binding %s: whether an interrupted apply has left a mount of %s on "+
					"host %s is not known (findmnt | grep virtclaim): %s", state.Name.ValueString(), i.Name, key, err))
			}
		}
	}
}

// detach unplugs the storage from the machines on the hosts where it is about to be released. Machines that have it from another instance
// of the binding keep it; shared reports that there are any, because they need the credentials, which both instances have under the same
// id. A machine that was migrated by hand is an error; all is empty when the binding itself stays.
func (r *binding) detach(ctx context.Context, state model, own privateState, keys []string, all guard.Hosts,
	diags *diag.Diagnostics,
) (shared bool, err error) {
	v, known, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	if !known && !state.isAdopted(own) {
		diags.AddWarning("The users of the storage were not checked", fmt.Sprintf("The binding %s was imported, and its volume was "+
			"never resolved. Make sure that no machine uses it.", state.Name.ValueString()))
	}
	if !known || len(v.Images) == 0 || len(keys) == 0 {
		return false, nil
	}
	hosts := map[string]guard.Host{}
	for _, key := range keys {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			return false, err
		}
		hosts[key] = h
	}
	others, err := r.others(ctx, state, own)
	if err != nil {
		return false, err
	}
	isIndependent := func(u guard.Use) bool {
		if others.isOtherInstance(u, v.Images[0].Binding) {
			shared = true
			return true
		}
		// A folder above the bound one, or a disk of a pool in it, is not the binding's.
		if u.Binding == "" && u.Image().Binding == "" && (u.Device.IsFolder() || v.Images[0].IsFolder()) {
			return true
		}
		return own.isIndependent(u, state.ID.ValueString(), others)
	}
	uses, err := r.uses(ctx, v.Images[0], keys)
	if err == nil {
		uses = slices.DeleteFunc(uses, isIndependent)
		err = all.CheckUses(ctx, uses)
	}
	if err != nil {
		return false, err
	}
	defer tfvalue.Progress(ctx, "Waiting for guests to acknowledge the unplug", map[string]any{"binding": state.Name.ValueString()})()
	err = guard.Detach(ctx, hosts, v.Images[0], []string{r.Provider.Owner, own.Owner}, uses, func(u guard.Use) error {
		if err := r.checkMasters(ctx, u); err != nil {
			return err
		}
		return r.checkLeft(ctx, state, own, u, v.Images[0])
	})
	return shared, err
}

// checkMasters returns content.ErrMasterChanged for a use by a running domain that may have the only copy of a master of its overlay.
func (r *binding) checkMasters(ctx context.Context, u guard.Use) error {
	h, err := r.Provider.Hosts.Host(u.Host)
	if err != nil || !u.Live {
		return err
	}
	if err = content.CheckOpenMasters(ctx, h, u.Device.Volume.Images); errors.Is(err, content.ErrMasterChanged) {
		return guard.ExplainMaster(u.Domain, u.Device, err)
	}
	return err
}

// isSuperseded reports whether a later binding of the same owner, name and storage has replaced this one, so that the machines belong to
// the later one. For a claim its record says so. For direct storage it is known if the same apply created the later one, or from the nonce
// of the credentials on hosts (docs/decisions/0006).
func (r *binding) isSuperseded(ctx context.Context, state model, own privateState, hosts []string, diags *diag.Diagnostics) (bool, error) {
	v, known, d := tfvalue.VolumeFrom(state.Volume)
	diags.Append(d...)
	if heir, ok := r.Provider.LookupBinding(state.ID.ValueString()); ok && known && sameUnit(heir, v.Images[0]) {
		return true, nil
	}
	for _, key := range hosts {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			return false, err
		}
		is, err := secret.Get(ctx, h, state.ID.ValueString())
		switch {
		case err == nil && is.Nonce != own.Nonce:
			return true, nil
		case errors.Is(err, newer.Err): // before a machine is detached
			return false, fmt.Errorf("host %s: %w", key, err)
		}
	}
	others, err := r.others(ctx, state, own)
	return others.isReplaced, err
}
