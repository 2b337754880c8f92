package providerdata

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// usageTypeName is the attribute of a resource whose storage pool is that of a usage type.
const usageTypeName = "usage_type"

// askTime is how long a plan waits for a host that is connected and does not answer.
const askTime = 10 * time.Second

// Prerequisites are the calls of a host for what a planned resource needs of it.
type Prerequisites interface {
	CheckConnection(ctx context.Context) error
	Presence(ctx context.Context, kind host.Kind, name string) (host.Presence, error)
}

// WarnOfPrerequisite warns in a plan of a host that does not answer, and of a pool or network that can't be used yet. An empty name
// asks only whether the host answers. Of several warnings with one summary Terraform shows only the first.
func (d *Data) WarnOfPrerequisite(
	ctx context.Context, key string, h Prerequisites, kind host.Kind, name string, at path.Path, diags *diag.Diagnostics,
) {
	if d.IsApplying() {
		return
	}
	err := d.CheckHost(ctx, key, h)
	if err != nil {
		diags.AddAttributeWarning(path.Root("host"), fmt.Sprintf("Host %s does not answer", key),
			fmt.Sprintf("The apply fails if the host is still unreachable: %s", err))
	}
	if err != nil || name == "" {
		return
	}
	ask := func(ctx context.Context) (host.Presence, error) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		return h.Presence(ctx, kind, name)
	}
	is, err := AskOnce(ctx, d, fmt.Sprintf("%s/%s/%s", key, kind, name), ask)
	object := fmt.Sprintf("%s %q", map[host.Kind]string{host.StoragePool: "storage pool", host.Network: "network"}[kind], name)
	switch {
	case err != nil:
		tflog.Warn(ctx, "What a host has is not known", map[string]any{"error": err.Error()})
	case is == host.Missing:
		diags.AddAttributeWarning(at, fmt.Sprintf("Host %s has no %s", key, object), fmt.Sprintf(
			"A resource of this apply may make it; otherwise the apply fails. To see what there is: virsh %s-list --all", kind))
	case is == host.Inactive:
		diags.AddAttributeWarning(at, fmt.Sprintf("The %s of host %s is not active", object, key), fmt.Sprintf(
			"A resource of this apply may start it; otherwise the apply fails. To start it: virsh %s-start %s", kind,
			host.ShellQuote(name)))
	}
}

// CheckHost is the error of a host that does not answer. In a plan, it is asked once.
func (d *Data) CheckHost(ctx context.Context, key string, h Prerequisites) error {
	_, err := AskOnce(ctx, d, key, func(ctx context.Context) (host.Presence, error) { return "", h.CheckConnection(ctx) })
	return err
}

// PlannedHost is the host of that key, or an error if there is none or it does not answer. In a plan, it is asked once.
func (d *Data) PlannedHost(ctx context.Context, key string) (*host.Host, error) {
	h, err := d.Hosts.Host(key)
	if err != nil {
		return nil, err
	}
	return h, d.CheckHost(ctx, key, h)
}

// PlanPlace plans the usage type where none is configured: that of the state, also if the host has more of them now, or else the only one
// of the host. As far as they are known, it refuses a host that the provider is not configured with, and a usage type that the host does
// not have.
func (d *Data) PlanPlace(
	ctx context.Context, req resource.ModifyPlanRequest, on types.String, usageType *types.String, diags *diag.Diagnostics,
) {
	var configured, of, was types.String
	diags.Append(req.Config.GetAttribute(ctx, path.Root(usageTypeName), &configured)...)
	diags.Append(req.State.GetAttribute(ctx, path.Root("host"), &of)...)
	diags.Append(req.State.GetAttribute(ctx, path.Root(usageTypeName), &was)...)
	isDefault := configured.IsNull() && (was.IsNull() || !on.IsUnknown() && !on.Equal(of))
	switch {
	case isDefault:
		*usageType = types.StringUnknown()
	case configured.IsNull():
		*usageType = was
	}
	if on.IsUnknown() || !d.Ready() {
		return
	}
	key := on.ValueString()
	if _, err := d.Hosts.Host(key); err != nil {
		diags.AddAttributeError(path.Root("host"), "Unknown host", err.Error())
		return
	}
	var only string
	var err error
	if isDefault {
		only, err = d.UsageTypes(key).Only(ctx)
		*usageType = types.StringValue(only)
	}
	if err == nil && !usageType.IsUnknown() {
		err = d.UsageTypes(key).Check(ctx, usageType.ValueString())
	}
	if err != nil {
		diags.AddAttributeError(path.Root(usageTypeName), "Unknown usage type", err.Error())
	}
}

// AskOnce is the answer to a question that is asked once in a plan.
func AskOnce[T any](ctx context.Context, d *Data, what string, ask func(context.Context) (T, error)) (T, error) {
	once, _ := d.asked.LoadOrStore(what, sync.OnceValues(func() (T, error) { return ask(ctx) }))
	return once.(func() (T, error))()
}

// WarnOfPool is WarnOfPrerequisite for the pool of a usage type, as far as it is known. The apply makes that of a folder.
func (d *Data) WarnOfPool(ctx context.Context, on, usageType types.String, diags *diag.Diagnostics) {
	key := on.ValueString()
	h, err := d.Hosts.Host(key)
	if err != nil || diags.HasError() {
		return
	}
	places, _ := d.UsageTypes(key).Places(ctx) // an error is one of the plan already
	d.WarnOfPrerequisite(ctx, key, h, host.StoragePool, places[usageType.ValueString()].Pool, path.Root(usageTypeName), diags)
}
