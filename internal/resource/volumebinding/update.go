package volumebinding

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Update adds before it removes: it writes the new volume and missing or outdated credentials first, then removes the credentials from
// hosts that the binding no longer has.
func (r *binding) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	c := change{binding: r, diags: &resp.Diagnostics}
	ctx, cancel, ok := r.BeginUpdate(ctx, req, &c.plan, &c.state, updateTimeout, c.diags)
	defer cancel()
	if !ok {
		return
	}
	if !c.plan.needsResolving(c.state) {
		// Only the timeouts differ.
		resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, c.plan)...)
		return
	}
	source := c.plan.Source
	if c.own = r.readPrivateState(ctx, c.state, req.Private, c.diags); c.diags.HasError() || !c.make(ctx) ||
		!c.resolve(ctx, secretOf(ctx, req.Config, &resp.Diagnostics)) {
		return
	}
	err := c.acquire(ctx, resp.Private)
	if err == nil {
		err = c.releaseRemoved(ctx)
	}
	if err != nil {
		if left := c.undo.Revert(ctx); left != nil {
			err = errors.Join(err, fmt.Errorf("left behind: %w", left))
		}
		c.fail(err)
		return
	}
	c.own.Version, c.own.Everywhere, c.own.Imported, c.own.Remade = c.found.Version(), false, false, false
	c.plan.Source = source
	c.plan.finish(ctx, c.actual, merge(c.state.credentialVersions(ctx, c.diags), c.versions, c.hosts), c.diags)
	tfvalue.SavePrivate(ctx, resp.Private, privateStateKey, c.own, c.diags)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, c.plan)...)
}

// change is a running update.
type change struct {
	*binding
	plan, state model
	own         privateState
	diags       *diag.Diagnostics

	// found is the resolved source, and actual the volume that the binding is to have.
	found  source.Resolved
	actual volume.Volume
	// hosts are the planned hosts, before the hosts that may have something of the binding.
	hosts, before []string
	// versions are those of the written credentials, by host.
	versions map[string]string
	// moved is set if a dynamic source has another answer than before, and resized if its volume was asked to grow.
	moved, resized bool
	// undo reverts acquire.
	undo revert.Stack
}

// make makes sure that the server of a dynamic source runs, and asks it again where the volume is.
func (c *change) make(ctx context.Context) bool {
	k, err := c.dynamicVolume(ctx, c.plan, c.diags)
	if err == nil && k != nil {
		defer tfvalue.Progress(ctx, "Waiting for the volume", map[string]any{"binding": c.plan.Name.ValueString()})()
		if was := c.state.dynamic(ctx, c.diags); was != nil && k.from.isOther(ctx, *was) {
			c.diags.AddAttributeError(sourcePath.AtName(dynamicSource), "The source changed during the apply", "What was unknown in the "+
				"plan would make another volume. Nothing was changed. Plan and apply again: the binding is replaced then.")
			return false
		} else if was != nil {
			c.resized = !k.from.Parameters.Equal(was.Parameters)
			k.from.checkShrinking(*was, c.diags.AddAttributeError)
		}
		if c.diags.HasError() {
			return false
		}
		before := c.own.Answer.Fingerprint()
		c.state = c.state.answered(ctx, c.own, c.diags)
		err = k.update(ctx, c.state, c.resized, &c.own, c.diags)
		c.moved = before != c.own.Answer.Fingerprint()
		c.plan = c.plan.answered(ctx, c.own, c.diags)
		c.plan.Reserved = c.planReserved(c.plan)
	}
	addSourceError(c.diags, "The binding could not be updated", sourcePath.AtName(dynamicSource), err)
	return !c.diags.HasError()
}

// resolve resolves the source, which must lead to the planned storage.
func (c *change) resolve(ctx context.Context, secret types.String) bool {
	var ok bool
	if c.found, ok = c.await(ctx, c.plan, secret, &c.own, c.diags); !ok {
		return false
	}
	c.hosts = c.plan.hostKeys(ctx, c.diags)
	c.actual = c.plan.held(c.found.Volume, c.hosts, c.plan.instance(ctx, &c.state, c.own, c.diags))
	c.before = c.present(c.state, c.hostsBefore(ctx, c.state, c.own, c.diags), c.diags)
	if err := errors.Join(c.checkRemade(ctx), c.checkMoved(ctx)); err != nil {
		c.fail(err)
		return false
	}
	// The volume of an import was resolved without the options that the configuration adds.
	if !checkIdentity(c.plan.Volume, c.actual, c.diags) ||
		!c.moved && c.state.isAdopted(c.own) && !checkIdentity(c.state.Volume, c.actual, c.diags) {
		return false
	}
	return true
}

// checkMoved refuses other storage of a dynamic source while machines run with the former: they would write what others may have by its
// new name.
func (c *change) checkMoved(ctx context.Context) error {
	was, known, d := tfvalue.VolumeFrom(c.state.Volume)
	c.diags.Append(d...)
	if !c.moved || !known || sameUnit(was.Images[0], c.actual.Images[0]) {
		return nil
	}
	former, is := was.Images[0], c.actual.Images[0]
	uses, err := c.uses(ctx, former, c.Provider.Hosts.Keys())
	for _, u := range uses {
		if u.Live || u.Saved {
			err = errors.Join(err, fmt.Errorf("%w: the volume was %s%s, and the server names %s%s now. Domain %s on host %s runs with the "+
				"former, or is saved: stop it before, so that never two machines write to one volume", guard.ErrInUse, former.Name,
				at(former), is.Name, at(is), u.Domain, u.Host))
		}
	}
	return err
}

func (c *change) fail(err error) {
	c.diags.AddError("The binding could not be updated",
		fmt.Sprintf("%s: %s\n\nApply again when this is mended.", c.plan.Name.ValueString(), err))
}

// acquire acquires what the plan adds: the claim under its mode, credentials on hosts, and the volume's size. To revert it removes the
// credentials from hosts that the binding did not have before, and resets the mode on record.
func (c *change) acquire(ctx context.Context, private tfvalue.PrivateState) error {
	if err := c.checkMode(ctx, c.plan, c.state, c.actual); err != nil {
		return err
	}
	c.own.Reserved = c.own.Reserved || c.plan.Reserved.ValueBool()
	tfvalue.SavePrivate(ctx, private, privateStateKey, c.own, c.diags)
	if err := c.reserve(ctx, c.plan, c.own, c.actual, c.diags); err != nil {
		return err
	}
	c.undo.Push(c.resetMode)
	if !c.plan.sameBinding(c.state) {
		if err := c.checkPods(ctx, c.plan, c.diags); err != nil {
			return err
		}
	}
	record := c.plan.record(c.own, c.found.Credentials)
	stale := c.stale(ctx, c.state, c.hosts, record, c.diags)
	if c.moved {
		stale = c.hosts // the answer is noted with the credentials
	}
	var err error
	if c.versions, err = c.putCredentials(ctx, record, c.found.Credentials, stale, c.before, &c.undo); err != nil {
		return err
	}
	added := leftHosts(c.hosts, c.before)
	if c.own.Remade {
		added = c.hosts
	}
	if err := c.checkDevices(ctx, c.actual, c.found.Device, added, c.diags); err != nil {
		return err
	}
	if err := c.attach(ctx, c.plan, c.actual, c.hosts, &c.undo, c.diags); err != nil {
		return err
	}
	if err := c.measureAgain(ctx, stale); err != nil || !c.own.Remade {
		return err
	}
	c.own.Remade = false
	return c.reserve(ctx, c.plan, c.own, c.actual, c.diags)
}

// releaseRemoved releases what the plan removes: hosts, credentials that the storage no longer needs, and the reservation.
func (c *change) releaseRemoved(ctx context.Context) error {
	if _, err := c.detach(ctx, c.state, c.own, leftHosts(c.before, c.hosts), guard.Hosts{}, c.diags); err != nil {
		return err
	}
	c.forget(ctx, c.state, leftHosts(c.before, c.hosts), c.diags)
	if err := c.unattach(ctx, c.state, c.hostsBefore(ctx, c.state, c.own, c.diags), c.actual.Images[0], c.diags); err != nil {
		return err
	}
	keep := c.hosts
	if c.found.Credentials == nil {
		keep = nil
	}
	if err := c.removeCredentials(ctx, c.plan.ID.ValueString(), c.own.Nonce, leftHosts(c.before, keep)); err != nil {
		return err
	}
	if c.plan.Reserved.ValueBool() {
		return nil
	}
	err := c.release(ctx, c.state, c.own, reservation.End, c.diags)
	c.own.Reserved = err != nil
	return err
}

// resetMode resets the record to the binding's mode before the update.
func (c *change) resetMode(ctx context.Context) error {
	if c.plan.AccessMode.Equal(c.state.AccessMode) {
		return nil
	}
	if err := c.reserve(ctx, c.state, c.own, c.actual, c.diags); err != nil {
		return fmt.Errorf("the reservation stays %s: %w", c.plan.AccessMode.ValueString(), err)
	}
	return nil
}
