package providerdata

import (
	"context"
	"time"

	ofdata "github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// values are a plan, a state or a configuration.
type values interface {
	GetAttribute(ctx context.Context, path path.Path, target any) diag.Diagnostics
}

// BeginCreate reads the plan, and limits the time of a create until end is called. ok is false after an error.
func (r *Resource) BeginCreate(ctx context.Context, req resource.CreateRequest, plan any, most time.Duration, diags *diag.Diagnostics,
) (limited context.Context, end context.CancelFunc, ok bool) {
	r.Provider.Apply()
	diags.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, plan)...)
	return within(ctx, req.Plan, timeouts.Value.Create, most, diags)
}

// BeginRead reads the state, and limits the time of a read until end is called. ok is false after an error, and while the provider is
// unknown: then the response keeps the prior state.
func (r *Resource) BeginRead(ctx context.Context, req resource.ReadRequest, state any, most time.Duration, diags *diag.Diagnostics,
) (limited context.Context, end context.CancelFunc, ok bool) {
	if !r.Provider.Ready() {
		return ctx, func() {}, false
	}
	r.Provider.Refreshes()
	diags.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, state)...)
	return within(ctx, req.State, timeouts.Value.Read, most, diags)
}

// BeginUpdate reads plan and state, and limits the time of an update until end is called. ok is false after an error.
func (r *Resource) BeginUpdate(ctx context.Context, req resource.UpdateRequest, plan, state any, most time.Duration,
	diags *diag.Diagnostics,
) (limited context.Context, end context.CancelFunc, ok bool) {
	r.Provider.Apply()
	diags.Append(tfvalue.Get(ctx, req.Plan.Schema, req.Plan.Raw, plan)...)
	diags.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, state)...)
	return within(ctx, req.Plan, timeouts.Value.Update, most, diags)
}

// BeginDelete reads the state, and limits the time of a delete until end is called. ok is false after an error.
func (r *Resource) BeginDelete(ctx context.Context, req resource.DeleteRequest, state any, most time.Duration, diags *diag.Diagnostics,
) (limited context.Context, end context.CancelFunc, ok bool) {
	diags.Append(tfvalue.Get(ctx, req.State.Schema, req.State.Raw, state)...)
	return within(ctx, req.State, timeouts.Value.Delete, most, diags)
}

// BeginRead reads the configuration, and limits the time of a read until end is called. ok is false after an error; one is that the
// provider is unknown.
func (d *DataSource) BeginRead(ctx context.Context, req datasource.ReadRequest, config any, most time.Duration, diags *diag.Diagnostics,
) (limited context.Context, end context.CancelFunc, ok bool) {
	if !d.Provider.Ready() {
		diags.AddError(d.Unreadable, "The provider's configuration has values that only the apply will tell, so "+d.Unasked+
			" yet. Let the data source depend on what they come from (depends_on); then it is read during the apply.")
		return ctx, func() {}, false
	}
	diags.Append(req.Config.Get(ctx, config)...)
	return within(ctx, req.Config, ofdata.Value.Read, most, diags)
}

// within limits the time by the attribute timeouts, of which of is the kind of operation.
func within[T any](ctx context.Context, from values, of func(T, context.Context, time.Duration) (time.Duration, diag.Diagnostics),
	most time.Duration, diags *diag.Diagnostics,
) (limited context.Context, end context.CancelFunc, ok bool) {
	var configured T
	if !diags.HasError() {
		diags.Append(from.GetAttribute(ctx, path.Root("timeouts"), &configured)...)
	}
	timeout, d := of(configured, ctx, most)
	diags.Append(d...)
	limited, end = context.WithTimeout(ctx, timeout)
	return limited, end, !diags.HasError()
}
