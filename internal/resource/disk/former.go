package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// formerKey is the key in private state of where a disk has been that moves with its machine: Terraform updates the disk first, which is
// only prepared on its new host then. The machine's update brings the content. The journal on the new host has the same, and is gone after
// that.
const formerKey = "moves_from"

// loadFormer is where the disk still is; nil if it has arrived.
func loadFormer(ctx context.Context, private tfvalue.PrivateReader, diags *diag.Diagnostics) *content.Former {
	f, _, err := tfvalue.LoadPrivate[content.Former](ctx, private, formerKey, diags)
	if err != nil || f.Host == "" {
		return nil
	}
	return &f
}

// stillMoves is loadFormer, if the journal says the same.
func (r *disk) stillMoves(ctx context.Context, m model, private tfvalue.PrivateReader, diags *diag.Diagnostics) (*content.Former, error) {
	own, known := m.made(ctx, diags)
	if loadFormer(ctx, private, diags) == nil || !known {
		return nil, nil
	}
	return r.Provider.Mover().Former(ctx, m.Host.ValueString(), own.Images[0])
}

// isMoving reports whether the disk's content may still be on its former host, and forgets a move that the machine has completed.
func (r *disk) isMoving(ctx context.Context, m *model, private tfvalue.PrivateState, diags *diag.Diagnostics) bool {
	if loadFormer(ctx, private, diags) == nil {
		return false
	}
	f, err := r.stillMoves(ctx, *m, private, diags)
	if err != nil {
		addError(diags, *m, "The disk could not be read", err)
		return true
	}
	if f != nil {
		return true
	}
	if err := r.checkGone(ctx, m, *loadFormer(ctx, private, diags)); err != nil {
		addError(diags, *m, "Where the disk's content is, is not known", err)
		return true
	}
	tfvalue.SavePrivate(ctx, private, formerKey, content.Former{}, diags)
	return false
}

// checkGone refuses to take a disk for moved whose record is gone while its former host still has it: that goes before the record. If only
// that host has it, it is there again.
func (r *disk) checkGone(ctx context.Context, m *model, f content.Former) error {
	if !slices.Contains(r.Provider.Hosts.Keys(), f.Host) {
		return nil // given up
	}
	h, err := r.Provider.Hosts.Host(f.Host)
	if err != nil {
		return err
	}
	own, _ := m.made(ctx, &diag.Diagnostics{})
	v, below, err := r.at(ctx, *m, f, m.Name.ValueString(), own)
	if errors.Is(err, host.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	seen, err := content.See(ctx, h, v, m.Format.ValueString())
	if err != nil || content.Recognize(seen, m.Format.ValueString(), own.Images[0].Generation) != nil {
		return err
	}
	_, _, err = r.at(ctx, *m, content.Former{Host: m.Host.ValueString(), Pool: m.Pool.ValueString()}, m.Name.ValueString(), own)
	if errors.Is(err, host.ErrNotFound) {
		m.Host = types.StringValue(f.Host)
		m.place(v, below, own)
		return nil
	}
	return fmt.Errorf("its move from host %s was not complete, and the record of it, a domain virtclaim-… on host %s, was removed. Both "+
		"have a file of it. Find out which one counts, and delete the other one: virsh vol-delete %s --pool %s", f.Host,
		m.Host.ValueString(), m.Name.ValueString(), m.Pool.ValueString())
}

// isUnfinished reports whether an update is needed: the disk has been prepared here for a machine that does not have it any more, or the
// copy was interrupted.
func (r *disk) isUnfinished(ctx context.Context, m model, private tfvalue.PrivateReader, diags *diag.Diagnostics) bool {
	own, known := m.made(ctx, diags)
	if !known || loadFormer(ctx, private, diags) == nil {
		return false
	}
	mover, key := r.Provider.Mover(), m.Host.ValueString()
	is, err := mover.IsLeft(ctx, key, own.Images[0])
	if err == nil && !is {
		is, err = mover.IsTorn(ctx, key, own.Images[0])
	}
	return is && err == nil
}

// isAway reports whether a disk that is gone from its host has moved in an apply that was interrupted after that.
func (r *disk) isAway(ctx context.Context, m model, diags *diag.Diagnostics) bool {
	own, known := m.made(ctx, diags)
	if !known {
		return false
	}
	at := content.Former{Host: m.Host.ValueString(), Pool: m.Pool.ValueString()}
	held, err := r.Provider.Mover().IsHeld(ctx, at, m.Name.ValueString(), own.Images[0].Generation)
	if err != nil {
		addError(diags, m, "The disk could not be read", err)
	}
	return held || err != nil
}

// comeBack removes what was prepared for a disk that stays on its former host.
func (r *disk) comeBack(ctx context.Context, plan *model, state model, own volume.Volume, f content.Former) error {
	v, below, err := r.at(ctx, *plan, f, state.Name.ValueString(), own)
	if err != nil {
		return err
	}
	if err = r.settle(ctx, state.Host.ValueString(), f, own.Images[0]); err == nil {
		err = r.Provider.Mover().Withdraw(ctx, state.Host.ValueString(), own.Images[0])
	}
	if err == nil {
		plan.place(v, below, own)
	}
	return err
}

// at is the disk's volume on a host, and the images below it there.
func (r *disk) at(ctx context.Context, m model, on content.Former, name string, own volume.Volume) (v host.StorageVolume,
	below []volume.Image, err error,
) {
	h, err := r.Provider.Hosts.Host(on.Host)
	if err != nil {
		return v, nil, err
	}
	v, err = h.Volume(ctx, on.Pool, name)
	if err = content.Described(err, own.Images[0].Format); err != nil || !m.isOverShared() {
		return v, own.Images[1:], err
	}
	m.Host = types.StringValue(on.Host)
	bases, err := content.BasesOf(ctx, h, v)
	return v, m.shared(bases...), err
}

// place sets where the disk is.
func (m *model) place(at host.StorageVolume, below []volume.Image, is volume.Volume) {
	v := m.asConfigured(volume.Volume{Capacity: is.Capacity, Images: append([]volume.Image{is.Images[0]}, below...)})
	v.Images[0].Name = at.Path
	m.Pool, m.Name = types.StringValue(at.Pool), types.StringValue(at.Name)
	m.ID = types.StringValue(m.Host.ValueString() + "/" + at.Pool + "/" + at.Name)
	m.Volume = tfvalue.VolumeObject(v, tfvalue.Unknowns{})
}

// endMove ends a move that is not complete before the disk is removed: it is where its content is after that.
func (r *disk) endMove(ctx context.Context, m *model, own *volume.Volume, private tfvalue.PrivateReader, diags *diag.Diagnostics) error {
	f, err := r.stillMoves(ctx, *m, private, diags)
	if f == nil || err != nil {
		return err
	}
	if f.Came {
		return r.arrive(ctx, *m, own.Images[0])
	}
	former := *m
	former.Host = types.StringValue(f.Host)
	if err := r.comeBack(ctx, &former, *m, *own, *f); err != nil {
		return fmt.Errorf("its move from host %s is not complete: %w", f.Host, err)
	}
	*m = former
	*own, _ = m.made(ctx, diags)
	return nil
}
