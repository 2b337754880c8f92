package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// usersOfFormer are the machines that have the disk where it still is.
func (r *disk) usersOfFormer(ctx context.Context, h *host.Host, f content.Former, m model) ([]guard.Use, error) {
	v, err := h.Volume(ctx, f.Pool, m.Name.ValueString())
	if err = content.Described(err, m.Format.ValueString()); err != nil {
		return nil, err
	}
	users, err := guard.Users(ctx, f.Host, h, volume.Image{Type: "file", Name: v.Path})
	return slices.DeleteFunc(users, guard.Use.IsOfMove), err
}

// relocate prepares the disk on its new host, or completes or reverts what an earlier apply has prepared. One that no machine has is
// copied at once. The plan gets the place of the disk, and its volume.
func (r *disk) relocate(ctx context.Context, plan *model, state model, s sourceModel, private tfvalue.PrivateState,
	diags *diag.Diagnostics,
) error {
	own, _ := state.made(ctx, diags)
	left, err := r.stillMoves(ctx, state, private, diags)
	if err != nil {
		return err
	}
	if !plan.relocates(state) {
		if !plan.moves(state) {
			plan.ID, plan.Pool = state.ID, state.Pool
		}
		if left == nil || !r.isUnfinished(ctx, state, private, diags) {
			return nil
		}
	}
	if left != nil && left.Came {
		if err := r.arrive(ctx, state, own.Images[0]); err != nil {
			return err
		}
		left = nil
	}
	switch {
	case left == nil && plan.relocates(state):
		return r.moveThere(ctx, plan, state, own, s, private, diags)
	case left == nil:
	case plan.Host.Equal(state.Host):
		return r.finish(ctx, plan, state, own, *left, s, private, diags)
	case plan.Host.ValueString() == left.Host:
		err = r.comeBack(ctx, plan, state, own, *left)
	default:
		return fmt.Errorf("it was to move from host %s to host %s, which is not complete. Set one of these two as its host, and as that "+
			"of its machine, and apply", left.Host, state.Host.ValueString())
	}
	if err == nil {
		tfvalue.SavePrivate(ctx, private, formerKey, content.Former{}, diags)
	}
	return err
}

// finish brings a disk that is here already for Terraform, or prepares it once more for the machine that is to bring it.
func (r *disk) finish(ctx context.Context, plan *model, state model, own volume.Volume, left content.Former, s sourceModel,
	private tfvalue.PrivateState, diags *diag.Diagnostics,
) error {
	mover, key := r.Provider.Mover(), plan.Host.ValueString()
	alone, err := mover.IsLeft(ctx, key, own.Images[0])
	if err == nil && alone {
		if err = mover.MoveAlone(ctx, key, own.Images[0], "", progress(ctx, *plan)); err == nil {
			tfvalue.SavePrivate(ctx, private, formerKey, content.Former{}, diags)
		}
		return err
	}
	if err == nil {
		err = r.settle(ctx, key, left, own.Images[0])
	}
	from, to := r.Provider.RecordedHost(left.Host, "disk "+state.label(), diags), r.host(*plan, diags)
	if err != nil || diags.HasError() {
		return err
	}
	state.Host, state.Pool = types.StringValue(left.Host), types.StringValue(left.Pool)
	_, _, err = r.prepareThere(ctx, from, to, plan, state, own, s, diags)
	return err
}

// settle reverts the interrupted move of a machine that was to come with the disk to the host of that key.
func (r *disk) settle(ctx context.Context, key string, f content.Former, top volume.Image) error {
	id, err := r.Provider.Mover().MovesWith(ctx, key, top)
	if err == nil && id != "" {
		err = r.Provider.SettleMachine(ctx, f.Host, id)
	}
	return err
}

// arrive ends the move of a disk that has come, and of its machine.
func (r *disk) arrive(ctx context.Context, m model, top volume.Image) error {
	mover, key := r.Provider.Mover(), m.Host.ValueString()
	id, err := mover.MovesWith(ctx, key, top)
	if err == nil && id != "" {
		err = r.Provider.SettleMachine(ctx, key, id)
	}
	if err != nil {
		return err
	}
	return mover.Arrive(ctx, key, top)
}

// moveThere prepares the disk on its new host, over the same images, and copies it unless a machine takes it along.
func (r *disk) moveThere(ctx context.Context, plan *model, state model, own volume.Volume, s sourceModel, private tfvalue.PrivateState,
	diags *diag.Diagnostics,
) error {
	former := content.Former{Host: state.Host.ValueString(), Pool: state.Pool.ValueString()}
	from, to := r.host(state, diags), r.host(*plan, diags)
	if diags.HasError() {
		return nil
	}
	err := checkMovable(ctx, from, state, own.Images[0])
	if errors.Is(err, host.ErrNotFound) {
		return r.resume(ctx, plan, state, own, to, err)
	}
	if err != nil {
		return err
	}
	made, below, err := r.prepareThere(ctx, from, to, plan, state, own, s, diags)
	if err != nil || diags.HasError() {
		return err
	}
	top := own.Images[0]
	top.Name = made.Path
	users, err := r.usersOfFormer(ctx, from, former, state)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Metadata.Phase == "" || u.Metadata.Owner != r.Provider.Owner {
			return errors.Join(otherKeeps(u), r.Provider.Mover().Withdraw(ctx, to.Key, top))
		}
	}
	plan.place(made.StorageVolume, below, own)
	if bytes, err := to.PoolCapacity(ctx, made.Pool); err == nil {
		tfvalue.SavePrivate(ctx, private, filesystemKey, bytes, diags)
	}
	if len(users) > 0 {
		tfvalue.SavePrivate(ctx, private, formerKey, former, diags)
		return nil
	}
	tfvalue.SavePrivate(ctx, private, formerKey, content.Former{}, diags)
	err = r.Provider.Mover().MoveAlone(ctx, to.Key, top, "", progress(ctx, *plan))
	if err == nil {
		return nil
	}
	ctx, cancel := revert.Context(ctx)
	defer cancel()
	if undo := r.Provider.Mover().Withdraw(ctx, to.Key, top); errors.Is(undo, content.ErrCame) {
		tfvalue.SavePrivate(ctx, private, formerKey, former, diags)
		diags.AddWarning("Disk "+state.ID.ValueString()+" has moved, and is not removed yet", host.Describe("What it was", from.Key, err)+
			" The next apply removes it.")
		return nil
	} else if undo != nil {
		err = fmt.Errorf("%w\n\nLeft behind on host %s: its record, because: %w. The next apply goes on from there", err, to.Key, undo)
	}
	return err
}

// resume is moveThere for a disk whose apply was interrupted when it had moved, before the state had that: it is held where it was.
func (r *disk) resume(ctx context.Context, plan *model, state model, own volume.Volume, to *host.Host, gone error) error {
	former, top := content.Former{Host: state.Host.ValueString(), Pool: state.Pool.ValueString()}, own.Images[0]
	held, err := r.Provider.Mover().IsHeld(ctx, former, state.Name.ValueString(), top.Generation)
	if err != nil || !held {
		return errors.Join(gone, err)
	}
	pool, err := r.Provider.UsageTypes(to.Key).Existing(ctx, to, plan.UsageType.ValueString())
	if err != nil {
		return err
	}
	v, err := to.Volume(ctx, pool, state.Name.ValueString())
	if err = content.Described(err, top.Format); err != nil {
		return err
	}
	seen, err := content.See(ctx, to, v, top.Format)
	if err == nil {
		err = content.Recognize(seen, top.Format, top.Generation)
	}
	below := own.Images[1:]
	if err == nil && plan.isOverShared() {
		var bases []volume.Image
		bases, err = content.BasesOf(ctx, to, v)
		below = plan.shared(bases...)
	}
	if err != nil {
		return err
	}
	top.Name = v.Path
	plan.place(v, below, own)
	if err := r.Provider.Mover().Arrive(ctx, to.Key, top); err != nil {
		return err
	}
	return r.Provider.Mover().LetGo(ctx, former, state.Name.ValueString(), top.Generation)
}

// otherKeeps is the error of a disk that moves while a machine has it which this configuration does not have.
func otherKeeps(u guard.Use) error {
	return fmt.Errorf("%w: domain %s on host %s has it, and is not of this configuration, so that nothing would move it along. Take the "+
		"disk from that domain", guard.ErrInUse, u.Domain, u.Host)
}

// checkMovable refuses a disk that is not there, or that is another disk's master.
func checkMovable(ctx context.Context, from *host.Host, state model, top volume.Image) error {
	domains, err := guard.List(ctx, from)
	if err == nil {
		_, err = content.Removable(ctx, from, domains, state.Pool.ValueString(), state.Name.ValueString(), top.Format, top.Generation)
	}
	return err
}

// prepareThere makes the volume on the new host, without content, and returns the images below it there.
func (r *disk) prepareThere(ctx context.Context, from, to *host.Host, plan *model, state model, own volume.Volume, s sourceModel,
	diags *diag.Diagnostics,
) (made content.Created, below []volume.Image, err error) {
	top := own.Images[0]
	pool, err := r.Provider.UsageTypes(to.Key).Pool(ctx, to, plan.UsageType.ValueString())
	if err != nil {
		return made, nil, err
	}
	if err := checkRoom(ctx, from, to, state, pool); err != nil {
		return made, nil, err
	}
	spec := state.spec(ctx, pool, diags)
	spec.Name, spec.Prefix, spec.Format, spec.Preallocation = state.Name.ValueString(), "", top.Format, ""
	spec.Capacity, spec.Mode, spec.Master = *own.Capacity, "", volume.Volume{}
	var on content.Host = to
	switch {
	case plan.isOver():
		spec.Mode, on = plan.mode(), r.Provider.Files.On(to)
		spec.Master, _ = plan.master(ctx, diags)
		err = r.prepareMaster(ctx, to, on, &spec, diags)
		below = spec.Master.Images
	case plan.isOverShared():
		_, err = r.prepareContent(ctx, to, plan, s.pinned(state.Digest.ValueString()), &spec, diags)
	}
	if err != nil || diags.HasError() {
		return made, nil, err
	}
	made, err = r.Provider.Content.Prepare(ctx, to.Key, on, spec,
		content.Former{Host: from.Key, Pool: state.Pool.ValueString()}, top.Generation, progress(ctx, *plan))
	if plan.isOverShared() {
		below = plan.shared(made.Bases...)
	}
	return made, below, err
}
