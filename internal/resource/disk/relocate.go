package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// formerKey is the key in private state of where a disk has been that moves with its machine: Terraform updates the disk first, which is
// only prepared on its new host then. The machine's update brings the content. The journal on the new host has the same, and is gone after
// that.
const formerKey = "moves_from"

// relocates reports whether the disk's content goes to another host in this plan. Seeds and environments are made there instead.
func (m model) relocates(state model) bool {
	return !state.Host.IsNull() && m.hostsKnown() && !m.Host.Equal(state.Host) && !m.isShared() && !state.isShared() && !m.isUndecided() &&
		!m.isComposed() && !state.isImported()
}

// planRelocation refuses what can't go to another host, as far as it is known.
func (r *disk) planRelocation(ctx context.Context, plan, state model, diags *diag.Diagnostics) {
	own, known := state.made(ctx, diags)
	if !known || diags.HasError() {
		return
	}
	at := path.Root("host")
	plan.refuseGrowth(ctx, state, diags)
	if own.Images[0].Type != "file" {
		diags.AddAttributeError(at, "Only a file moves", fmt.Sprintf("Disk %s is %s. Make a clone of it on host %s: a virtclaim_disk of "+
			"another name.", state.ID.ValueString(), own.Images[0].Name, plan.Host.ValueString()))
	}
	if !r.Provider.Ready() || r.Provider.IsApplying() {
		return
	}
	h, err := r.Provider.Hosts.Host(state.Host.ValueString())
	if err != nil {
		return // its refresh has said so
	}
	names, err := content.OverlaysOf(ctx, h, own.Images[0].Name)
	if err == nil && len(names) > 0 {
		diags.AddAttributeError(at, "A master stays on its host", masterStays(state, plan, names))
	}
	to, err := r.Provider.Hosts.Host(plan.Host.ValueString())
	pool := ""
	if err == nil && !plan.UsageType.IsUnknown() {
		pool, err = r.Provider.UsageTypes(to.Key).Existing(ctx, to, plan.UsageType.ValueString())
	}
	if err != nil || pool == "" {
		return // the apply makes it, or says why not
	}
	if err := checkRoom(ctx, h, to, state, pool); errors.Is(err, errNoRoom) {
		diags.AddAttributeError(at, "Too little room for the disk", err.Error()+".")
	}
}

// refuseGrowth refuses to grow a disk while it moves: what is prepared has the size of what is copied.
func (m model) refuseGrowth(ctx context.Context, state model, diags *diag.Diagnostics) {
	own, known := state.made(ctx, diags)
	if size := m.size(); known && own.Capacity != nil && size > *own.Capacity {
		diags.AddAttributeError(path.Root("size"), "A disk that moves does not grow", fmt.Sprintf(
			"The move of disk %s to host %s is not complete. Leave its size at %s, and change it in another apply.", m.label(),
			m.Host.ValueString(), tfvalue.QuantityOfBytes(*own.Capacity).ValueString()))
	}
}

// errNoRoom is the error of a storage pool that is too full for a disk.
var errNoRoom = errors.New("it does not fit")

func masterStays(state, plan model, overlays []string) string {
	return fmt.Sprintf("Disk %s can't move to host %s: volumes are overlays of it (%s). Leave its host, and make another disk for %[2]s; "+
		"what is to move without it needs copy_mode = \"clone\".", state.ID.ValueString(), plan.Host.ValueString(),
		strings.Join(overlays, ", "))
}

// planRelocated is the volume of a disk that goes to another host: the same one, at a path that the apply knows.
func (m model) planRelocated(is volume.Volume) types.Object {
	v, u := m.asConfigured(is), tfvalue.Unknowns{Place: true}
	below := v.Images[1:]
	if v.Images = v.Images[:1]; !m.isOverShared() {
		return m.over(v, u)
	}
	shared := volume.Volume{Images: m.shared(slices.Clone(below)...)}
	return tfvalue.Over(v, u, tfvalue.VolumeObject(shared, tfvalue.Unknowns{Local: true, Format: true}))
}

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

// usersOfFormer are the machines that have the disk where it still is, and its file there.
func (r *disk) usersOfFormer(ctx context.Context, h *host.Host, f content.Former, m model) (users []guard.Use, file string, err error) {
	v, err := h.Volume(ctx, f.Pool, m.Name.ValueString())
	if err = content.Described(err, m.Format.ValueString()); err != nil {
		return nil, "", err
	}
	users, err = guard.Users(ctx, f.Host, h, volume.Image{Type: "file", Name: v.Path})
	return slices.DeleteFunc(users, guard.Use.IsOfMove), v.Path, err
}

// relocate prepares the disk on its new host, or completes or takes back what an earlier apply has prepared. One that no machine has is
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

// settle takes back the interrupted move of a machine that was to come with the disk to the host of that key.
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
	users, _, err := r.usersOfFormer(ctx, from, former, state)
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

// isAway reports whether a disk that is gone from its host has moved in an apply that was interrupted after that.
func (r *disk) isAway(ctx context.Context, m model, diags *diag.Diagnostics) bool {
	own, known := m.made(ctx, diags)
	if !known {
		return false
	}
	at := content.Former{Host: m.Host.ValueString(), Pool: m.Pool.ValueString()}
	held, err := r.Provider.Mover().IsHeld(ctx, at, m.Name.ValueString(), own.Images[0].Generation)
	return held || err != nil
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

// checkRoom refuses a disk that has allocated more than the storage pool has left.
func checkRoom(ctx context.Context, from, to *host.Host, state model, pool string) error {
	need, err := from.Allocated(ctx, state.Pool.ValueString(), state.Name.ValueString())
	if err != nil {
		return err
	}
	free, err := to.PoolFree(ctx, pool)
	if err == nil && free < need {
		err = fmt.Errorf("%w: storage pool %s of host %s has %d bytes left, and the disk has %d", errNoRoom, pool, to.Key, free, need)
	}
	return err
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
