package volumebinding

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Create resolves the source, writes the credentials to the hosts, and measures a volume whose capacity the claim doesn't have. If a step
// fails, what was written to hosts and claim is reverted.
func (r *binding) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	ctx, cancel, ok := r.BeginCreate(ctx, req, &plan, createTimeout, &resp.Diagnostics)
	defer cancel()
	if !ok {
		return
	}

	if plan.ID.IsUnknown() {
		plan.ID = types.StringValue(uuid.NewString())
	}
	if !r.Provider.ReserveName("binding " + plan.ID.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Two bindings of one name",
			fmt.Sprintf("Another resource of this configuration makes the binding %s, too: they would have each other's credentials. "+
				"Give each its own name.", plan.Name.ValueString()))
		return
	}
	defer r.lockDynamic(ctx, plan)()
	own := privateState{Nonce: uuid.NewString(), Owner: r.Provider.Owner}
	c := creation{binding: r, plan: plan, own: &own, diags: &resp.Diagnostics}
	if !c.run(ctx, secretOf(ctx, req.Config, &resp.Diagnostics)) {
		left := c.undo.Revert(ctx)
		if left == nil {
			return
		}
		// A revert that failed as well leaves the resource in state, so that the next apply removes the rest.
		resp.Diagnostics.AddError("Not everything could be removed again", fmt.Sprintf("%s: %s", plan.Name.ValueString(), leftBehind(left)))
	}
	plan.Reserved = c.plan.Reserved
	plan.finish(ctx, c.actual, c.versions, &resp.Diagnostics)
	tfvalue.SavePrivate(ctx, resp.Private, privateStateKey, own, &resp.Diagnostics)
	resp.Diagnostics.Append(tfvalue.Set(ctx, resp.State.Schema, &resp.State.Raw, plan)...)
}

// creation is a running create.
type creation struct {
	*binding
	// plan has the source that a dynamic source has answered.
	plan  model
	own   *privateState
	diags *diag.Diagnostics

	// actual has no images before the source is resolved.
	actual   volume.Volume
	versions map[string]string
	undo     revert.Stack
}

// run makes the volume of a dynamic source, resolves the source and binds the volume. Errors are in diags.
func (c *creation) run(ctx context.Context, secret types.String) (ok bool) {
	if !c.make(ctx) {
		return false
	}
	c.own.Reserved = c.plan.Reserved.ValueBool()
	found, ok := c.await(ctx, c.plan, secret, c.own, c.diags)
	if !ok {
		return false
	}
	c.own.Version = found.Version()
	c.actual = c.plan.held(found.Volume, c.plan.hostKeys(ctx, c.diags), c.plan.instance(ctx, nil, *c.own, c.diags))
	if !checkIdentity(c.plan.Volume, c.actual, c.diags) {
		return false
	}
	var err error
	if c.versions, err = c.bind(ctx, c.plan, *c.own, found, &c.actual, &c.undo, c.diags); err != nil {
		addBindError(ctx, c.diags, c.plan, err, fmt.Sprintf("%s: %s", c.plan.Name.ValueString(), err))
		return false
	}
	c.Provider.RecordBinding(c.plan.ID.ValueString(), c.actual.Images[0])
	return true
}

// make makes the volume of a dynamic source.
func (c *creation) make(ctx context.Context) (ok bool) {
	k, err := c.dynamicVolume(ctx, c.plan, c.diags)
	if err == nil && k != nil {
		defer tfvalue.Progress(ctx, "Waiting for the volume to be made", map[string]any{"binding": c.plan.Name.ValueString()})()
		err = k.create(ctx, c.own, &c.actual, &c.undo, c.diags)
		c.plan = c.plan.answered(ctx, *c.own, c.diags)
		c.plan.Reserved = c.planReserved(c.plan)
	}
	addSourceError(c.diags, "The volume could not be made", sourcePath.AtName(dynamicSource), err)
	return err == nil && !c.diags.HasError()
}

// bind reserves the claim, writes the credentials to the hosts, and measures a volume whose capacity the claim doesn't have. It returns the
// versions of the credentials by host.
func (r *binding) bind(ctx context.Context, m model, own privateState, found source.Resolved, v *volume.Volume, undo *revert.Stack,
	diags *diag.Diagnostics,
) (versions map[string]string, err error) {
	if err := r.checkReplaced(ctx, v.Images[0]); err != nil {
		return nil, err
	}
	undo.Push(func(ctx context.Context) error { return r.release(ctx, m, own, reservation.Release, diags) })
	if err := r.reserve(ctx, m, own, *v, diags); err != nil {
		return nil, err
	}
	if err := r.checkPods(ctx, m, diags); err != nil {
		return nil, err
	}
	hosts := v.Images[0].Hosts
	versions, err = r.putCredentials(ctx, m.record(own, found.Credentials), found.Credentials, hosts, nil, undo)
	if err == nil {
		err = r.checkDevices(ctx, *v, found.Device, hosts, diags)
	}
	if err == nil {
		err = r.attach(ctx, m, *v, hosts, undo, diags)
	}
	if err == nil {
		err = r.prepare(ctx, m, v, found.Volume.Capacity, hosts, unseen, diags)
	}
	return versions, err
}

func leftBehind(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("Left behind, because it could not be removed; the next apply does: %s", err)
}
