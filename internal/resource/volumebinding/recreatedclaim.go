package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// planRemade replaces a binding whose claim was deleted and recreated over other storage, because the machines still have the former one.
// While a guest may have the former file open, an update is planned instead, which fails: only then does Terraform also leave alone the
// machines that it would change before it destroys the binding. Over the same storage an update is planned as well, which measures the file
// again. A claim that is not ready changes nothing yet.
func (r *binding) planRemade(ctx context.Context, plan *model, state model, own privateState, resp *resource.ModifyPlanResponse) {
	if len(resp.RequiresReplace) > 0 || !r.isRemade(ctx, *plan, own) {
		return
	}
	var quiet diag.Diagnostics // the refresh has already reported the state of the claim
	now, credentials := r.planVolume(ctx, *plan, &state, own, &quiet)
	is, known, _ := tfvalue.VolumeFrom(now)
	was, wasKnown, d := tfvalue.VolumeFrom(state.Volume)
	resp.Diagnostics.Append(d...)
	if !known || !wasKnown {
		return
	}
	top := was.Images[0]
	if sameUnit(top, is.Images[0]) {
		if isDiskImage(is) {
			plan.Volume = tfvalue.VolumeObject(is, tfvalue.Unknowns{Capacity: true})
		}
		return
	}
	at := sourcePath.AtName(claimSource)
	if err := r.checkOpenFile(ctx, top, r.present(state, r.hostsOf(ctx, state, own, &quiet), &quiet), nil); err != nil {
		plan.Volume, plan.Credentials = tfvalue.VolumeObject(was, tfvalue.Unknowns{Capacity: true}), state.Credentials
		resp.Diagnostics.AddAttributeWarning(at, "The claim was made again over other storage", fmt.Sprintf("The claim of the binding %s "+
			"was %s, and is %s now. The apply is going to refuse to go on with it: %s.", state.Name.ValueString(), top.Name,
			is.Images[0].Name, err))
		return
	}
	if r.Provider.IsApplying() {
		return
	}
	r.checkReplacement(ctx, *plan, own, &resp.Diagnostics)
	plan.Volume, plan.Credentials = now, credentials
	resp.RequiresReplace = append(resp.RequiresReplace, path.Root("volume"))
	resp.Diagnostics.AddAttributeWarning(at, "The claim was made again over other storage",
		fmt.Sprintf("The binding %s is replaced: its claim was %s, and is %s now. Its machines change from one to the other.",
			state.Name.ValueString(), top.Name, is.Images[0].Name))
}

// isRemade reports whether the claim is known to be another one than was bound, or than the binding has adopted since.
func (r *binding) isRemade(ctx context.Context, plan model, own privateState) bool {
	var quiet diag.Diagnostics
	c := plan.claim(ctx, &quiet)
	if c == nil || own.ClaimUID == "" || !plan.isKnown(ctx, claimSource) {
		return false
	}
	lists, err := r.Provider.Lists()
	if err != nil {
		return false
	}
	now, err := lists.Claim(ctx, c.Ref().Namespace, c.Ref().Name)
	return err == nil && (own.Remade || string(now.UID) != own.ClaimUID)
}

// checkRemade refuses to adopt a recreated claim while machines or overlays need the former storage.
func (c *change) checkRemade(ctx context.Context) error {
	was, known, d := tfvalue.VolumeFrom(c.state.Volume)
	c.diags.Append(d...)
	if !known {
		was = c.actual
	}
	if c.own.again && !c.own.Remade {
		var err error
		if c.own.Remade, err = c.isOtherFile(ctx, was); err != nil {
			return err
		}
	}
	keys := slices.Concat(c.hosts, leftHosts(c.before, c.hosts))
	if !c.own.Remade {
		return c.checkUnchanged(ctx, was, keys)
	}
	if !sameUnit(was.Images[0], c.actual.Images[0]) {
		return c.checkOpenFile(ctx, was.Images[0], keys, nil)
	}
	if !isDiskImage(was) {
		return c.checkOverlays(ctx, was.Images[0], keys)
	}
	return errors.Join(c.checkOverlays(ctx, was.Images[0], keys),
		c.checkOpenFile(ctx, was.Images[0], keys, func(u guard.Use) (bool, error) {
			open, proven, err := c.hasOpen(ctx, u, was.Images[0])
			return open && proven, err
		}))
}

// checkUnchanged is checkExchanged for all uses of a recreated claim with the same PersistentVolume, and checkOverlays, because nothing
// proves that the overlays are over the present file.
func (c *change) checkUnchanged(ctx context.Context, was volume.Volume, keys []string) error {
	if !c.own.again || !isDiskImage(was) || was.Images[0].Type != "file" {
		return nil
	}
	users, err := c.uses(ctx, was.Images[0], keys)
	err = errors.Join(err, c.checkOverlays(ctx, was.Images[0], keys))
	for _, u := range users {
		if u.Saved && !u.Live { // nothing proves which file its saved memory belongs to
			err = errors.Join(err, explainOpenFile(u, was.Images[0]))
		}
		err = errors.Join(err, c.checkExchanged(ctx, u, was.Images[0]))
	}
	return err
}

// isOtherFile reports whether the disk.img of a recreated claim with the same PersistentVolume is known to be another one, by its size,
// which no guest can change.
func (c *change) isOtherFile(ctx context.Context, was volume.Volume) (bool, error) {
	if was.Images[0].Type != "file" || was.Capacity == nil {
		return false, nil
	}
	found, _, err := c.measure(ctx, c.actual, c.hosts, c.diags)
	if err != nil {
		return false, err
	}
	is, err := content.CapacityAs(c.actual.Images[0].Format, found)
	return err == nil && is != *was.Capacity, err
}
