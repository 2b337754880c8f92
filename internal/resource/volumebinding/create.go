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
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Create resolves the source, writes the credentials to the hosts, and measures a volume whose capacity the claim doesn't have. If a step
// fails, what was written to hosts and claim is reverted.
func (r *binding) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.backend.Apply()
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	timeout, diags := plan.Timeouts.Create(ctx, createTimeout)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	if plan.ID.IsUnknown() {
		plan.ID = types.StringValue(uuid.NewString())
	}
	if !r.backend.ReserveName("binding " + plan.ID.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Two bindings of one name",
			fmt.Sprintf("Another resource of this configuration makes the binding %s, too: they would have each other's credentials. "+
				"Give each its own name.", plan.Name.ValueString()))
		return
	}
	own := privateState{Nonce: uuid.NewString(), Owner: r.backend.Owner, Reserved: plan.Reserved.ValueBool()}
	found, ok := r.await(ctx, plan, secretOf(ctx, req.Config, &resp.Diagnostics), &own, &resp.Diagnostics)
	if !ok {
		return
	}
	own.Version = found.Version()
	actual := plan.held(found.Volume, plan.hostKeys(ctx, &resp.Diagnostics), plan.instance(ctx, nil, own, &resp.Diagnostics))
	if !checkIdentity(ctx, plan.Volume, actual, &resp.Diagnostics) {
		return
	}
	var undo revert.Stack
	versions, err := r.bind(ctx, plan, own, found, &actual, &undo, &resp.Diagnostics)
	if err != nil {
		left := undo.Revert(ctx)
		addBindError(ctx, &resp.Diagnostics, plan, err, fmt.Sprintf("%s: %s%s", plan.Name.ValueString(), err, leftBehind(left)))
		if left == nil {
			return
		}
		// A revert that failed as well leaves the resource in state, so that the next apply removes the rest.
	} else {
		r.backend.RecordBinding(plan.ID.ValueString(), actual.Images[0])
	}
	plan.finish(ctx, actual, versions, &resp.Diagnostics)
	resp.Diagnostics.Append(own.save(ctx, resp.Private)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
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
		err = r.prepare(ctx, m, v, found.Volume.Capacity, hosts, unseen, diags)
	}
	return versions, err
}

func leftBehind(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("\n\nLeft behind, because it could not be removed; the next apply does: %s", err)
}
