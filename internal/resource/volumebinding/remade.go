package volumebinding

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// planRemade replaces a binding whose claim was deleted and made again over other storage: what the machines have is not
// what the claim leads to any more. Over the same storage it is the same to them, and a claim that is not ready changes
// nothing yet.
func (r *binding) planRemade(ctx context.Context, plan *model, state model, own holding, resp *resource.ModifyPlanResponse) {
	if len(resp.RequiresReplace) > 0 || r.backend.Applies() || !r.isRemade(ctx, *plan, own) {
		return
	}
	var quiet diag.Diagnostics // a refresh has said what became of the claim
	now, credentials := r.planVolume(ctx, *plan, &state, own, &quiet)
	is, known, _ := tfvalue.VolumeFrom(ctx, now)
	was, wasKnown, d := tfvalue.VolumeFrom(ctx, state.Volume)
	resp.Diagnostics.Append(d...)
	if !known || !wasKnown || sameUnit(was.Images[0], is.Images[0]) {
		return
	}
	plan.Volume, plan.Credentials = now, credentials
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("volume"))
	resp.Diagnostics.AddAttributeWarning(sourcePath.AtName(claimSource), "The claim was made again over other storage",
		fmt.Sprintf("The binding %s is replaced: its claim was %s, and is %s now. Its machines change from one to the other.",
			state.Name.ValueString(), was.Images[0].Name, is.Images[0].Name))
}

// isRemade tells whether the claim that is to be bound is known to be another one than was.
func (r *binding) isRemade(ctx context.Context, plan model, own holding) bool {
	var quiet diag.Diagnostics
	c := plan.claim(ctx, &quiet)
	if c == nil || own.ClaimUID == "" || !plan.isKnown(ctx, claimSource) {
		return false
	}
	lists, err := r.backend.Lists()
	if err != nil {
		return false
	}
	now, err := lists.Claim(ctx, c.Ref().Namespace, c.Ref().Name)
	return err == nil && string(now.UID) != own.ClaimUID
}

// checkOpenFile is guard.ErrInUse for the file of a claim that was made again while a domain runs with that path: the guest may have the
// former file open, which was deleted, and nothing on the host tells them apart.
func (r *binding) checkOpenFile(ctx context.Context, i volume.Image) error {
	if i.Type != "file" {
		return nil
	}
	var refused error
	for _, key := range i.Hosts {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return err
		}
		users, err := guard.Users(ctx, key, h, i)
		if err != nil {
			return err
		}
		for _, u := range users {
			refused = errors.Join(refused, explainOpenFile(u, i))
		}
	}
	return refused
}

// explainOpenFile is nil for a use that reads what it has, and for one of a domain that is off.
func explainOpenFile(u guard.Use, i volume.Image) error {
	if !u.Live && !u.Saved || u.Depth == 0 && !u.Device.Writes() {
		return nil
	}
	is := fmt.Sprintf("the claim was made again while domain %s, which runs on host %s or is saved with its memory, has %s. Its guest may have the former "+
		"file open, which is gone as soon as it stops", u.Domain, u.Host, i.Name)
	if u.Depth > 0 {
		return fmt.Errorf("%w: %s. Its disk %s is an overlay of that file, and is worth nothing over another one: save what is needed, and destroy that "+
			"overlay and its machine first", guard.ErrInUse, is, u.Device.Key)
	}
	return fmt.Errorf("%w: %s. To save what that has: %s. To go on with the file of the new claim, shut the domain down (virsh shutdown %s) and apply again",
		guard.ErrInUse, is, guard.Rescue(u.Domain, u.Device.Target), u.Domain)
}
