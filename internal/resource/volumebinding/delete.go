package volumebinding

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Delete needs only what is in state: a claim that is gone or being deleted must not hold it up.
func (r *binding) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	own, diags := loadHolding(ctx, req.Private)
	resp.Diagnostics.Append(diags...)
	timeout, diags := state.Timeouts.Delete(ctx, deleteTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	hosts := r.present(state, r.hostsOf(ctx, state, &resp.Diagnostics), &resp.Diagnostics)
	if err := r.letGo(ctx, state, own, hosts, &resp.Diagnostics); err != nil {
		resp.Diagnostics.AddError("The binding could not be removed", fmt.Sprintf("%s: %s", state.Name.ValueString(), err))
		return
	}
	if state.hasCredentials(ctx, &resp.Diagnostics) || !state.isAdopted() {
		if err := r.removeCredentials(ctx, state.ID.ValueString(), own.Nonce, hosts); err != nil {
			resp.Diagnostics.AddError("The binding could not be removed",
				fmt.Sprintf("%s: its credentials could not be removed from every host: %s\n\nApply again when this is mended.",
					state.Name.ValueString(), err))
			return
		}
	}
	if err := r.release(ctx, state, own, &resp.Diagnostics); err != nil {
		resp.Diagnostics.AddError("The binding could not be removed",
			fmt.Sprintf("%s: its claim could not be released: %s\n\nApply again when this is mended.", state.Name.ValueString(), err))
	}
}

// letGo has machines on hosts let go of the storage that is about to be released there. Where another binding of the same
// owner and name has come after this one, the machines are that one's by now.
func (r *binding) letGo(ctx context.Context, state model, own holding, keys []string, diags *diag.Diagnostics) error {
	v, known, d := tfvalue.VolumeFrom(ctx, state.Volume)
	diags.Append(d...)
	if !known && !state.isAdopted() {
		diags.AddWarning("Nobody has looked who uses the storage", fmt.Sprintf("The binding %s was imported, and where its volume is was "+
			"never found out. See to it yourself that no machine uses it.", state.Name.ValueString()))
	}
	if !known || len(v.Images) == 0 || len(keys) == 0 || r.isReplaced(state, v.Images[0]) {
		return nil
	}
	hosts := map[string]guard.Host{}
	for _, key := range keys {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return err
		}
		hosts[key] = h
	}
	others, err := r.others(ctx, state, own)
	if err != nil || others.isReplaced {
		return err
	}
	return guard.LetGo(ctx, hosts, v.Images[0], []string{r.backend.Owner, own.Owner}, func(u guard.Use) bool {
		return own.spares(u, state.ID.ValueString(), others)
	})
}

// isReplaced tells whether this very apply has made another binding of the same owner and name, and of the same storage.
// Only a claim keeps a record of that.
func (r *binding) isReplaced(state model, i volume.Image) bool {
	heir, ok := r.backend.Holds(state.ID.ValueString())
	return ok && sameUnit(heir, i)
}
