package virtualmachine

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// machineAction is what can be done to a running machine.
type machineAction struct {
	providerdata.Action
	description string
	// attributes are further ones than the machine.
	attributes map[string]schema.Attribute
	do         func(ctx context.Context, h *host.Host, uuid string, config tfsdk.Config) error
}

// Actions are the constructors of the actions of machines.
func Actions() (all []func() action.Action) {
	add := func(name, description string, attributes map[string]schema.Attribute,
		do func(context.Context, *host.Host, string, tfsdk.Config) error,
	) {
		all = append(all, func() action.Action {
			return &machineAction{providerdata.Action{TypeName: name}, description, attributes, do}
		})
	}
	plain := func(do func(*host.Host, context.Context, string) error) func(context.Context, *host.Host, string, tfsdk.Config) error {
		return func(ctx context.Context, h *host.Host, uuid string, _ tfsdk.Config) error { return do(h, ctx, uuid) }
	}
	add("reboot", "Asks the guest of a machine to reboot, by its agent or its power button, and does not wait for that. What is pending "+
		"for the machine's next start stays so: QEMU goes on running.", nil, plain((*host.Host).Reboot))
	add("reset", "Resets a machine, as its reset button does. The guest loses what it has not written to its disks.", nil,
		plain((*host.Host).Reset))
	add("pause", "Stops the processors of a machine, until it is resumed. Its memory is kept.", nil, plain((*host.Host).Pause))
	add("resume", "Continues a machine that is paused.", nil, plain((*host.Host).Resume))
	add("send_key", "Presses keys of a machine, all together.", map[string]schema.Attribute{
		"keys": schema.ListAttribute{
			Required: true, ElementType: types.Int64Type,
			MarkdownDescription: "Codes of up to 16 keys, as in Linux' `input-event-codes.h`: Ctrl, Alt, Delete is `[29, 56, 111]`.",
			Validators: []validator.List{
				listvalidator.SizeBetween(1, 16), listvalidator.ValueInt64sAre(int64validator.Between(1, 767)),
			},
		},
		"hold_time": schema.Int64Attribute{
			Optional: true, MarkdownDescription: "Milliseconds for which the keys are held down. Defaults to QEMU's 100.",
			Validators: []validator.Int64{int64validator.Between(1, 100000)},
		},
	}, sendKeys)
	return all
}

// Schema has the machine, and what the action needs.
func (a *machineAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: a.description, Attributes: map[string]schema.Attribute{
		"host": schema.StringAttribute{Required: true, MarkdownDescription: "Key of the machine's host in the provider's `hosts`."},
		"name": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the machine."},
	}}
	maps.Copy(resp.Schema.Attributes, a.attributes)
}

// Invoke does it to a running machine that is on no move: of one that is, two guests could run.
func (a *machineAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var key, name types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("host"), &key)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("name"), &name)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := a.invoke(ctx, key.ValueString(), name.ValueString(), req.Config); err != nil {
		resp.Diagnostics.AddError("The action failed", host.Describe("Machine "+name.ValueString(), key.ValueString(), err))
	}
}

func (a *machineAction) invoke(ctx context.Context, key, name string, config tfsdk.Config) error {
	if !a.Provider.Ready() {
		return fmt.Errorf("the provider's configuration is not known yet")
	}
	if tfvalue.IsReserved(name) {
		return fmt.Errorf("domain %q is one of virtclaim's own, and no machine", name)
	}
	h, err := a.Provider.Hosts.Host(key)
	if err != nil {
		return err
	}
	uuid, err := h.LookupByName(ctx, name)
	if err != nil {
		return err
	}
	_, at, err := (&virtualMachine{providerdata.Resource{Provider: a.Provider}}).manager(h, key).Read(ctx, uuid, false)
	switch {
	case err != nil:
		return err
	case at.IsMoving():
		return fmt.Errorf("it is on its way from one host to another. Apply the configuration that moves it first")
	case !at.IsOn():
		return fmt.Errorf("it is off. Start it: running = true")
	}
	return a.do(ctx, h, uuid, config)
}

func sendKeys(ctx context.Context, h *host.Host, uuid string, config tfsdk.Config) error {
	var keys []int64
	var hold types.Int64
	diags := config.GetAttribute(ctx, path.Root("keys"), &keys)
	if diags.Append(config.GetAttribute(ctx, path.Root("hold_time"), &hold)...); diags.HasError() {
		return fmt.Errorf("%s", diags[0].Detail())
	}
	codes := make([]uint32, len(keys))
	for n, k := range keys {
		codes[n] = uint32(k)
	}
	return h.SendKeys(ctx, uuid, codes, uint32(hold.ValueInt64()))
}
