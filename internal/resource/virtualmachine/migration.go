package virtualmachine

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// The ways to another host.
const (
	liveMode    = "live"
	offlineMode = "offline"
	replaceMode = "replace"
)

// moving is the suffix of the state of a machine whose move to another host is not complete, so that a plan has a change.
const moving = " (moving)"

var migrationGroup = attributeGroup{
	attributes: migrationAttributes, intent: noIntent, read: func(*model, domainxml.Machine) {},
}

type migrationModel struct {
	Mode         types.String `tfsdk:"mode"`
	Timeout      types.String `tfsdk:"timeout"`
	Bandwidth    types.Int64  `tfsdk:"bandwidth"`
	AutoConverge types.Bool   `tfsdk:"auto_converge"`
	PostCopy     types.Bool   `tfsdk:"postcopy"`
}

func migrationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"migration": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How the machine gets to another `host`, which the guide " +
			"[Moving machines](../guides/moving-machines.md) describes.",
		Attributes: map[string]schema.Attribute{
			"mode": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "`live`: the guest goes on running (a machine that is off is moved as it is). `offline`: the " +
					"guest is shut down before, and started after. `replace`: the machine is destroyed, and another one created. " +
					"Without a mode it is moved live where that is possible, and replaced where it is not, as the plan says; with " +
					"`live` or `offline` the plan is refused then.",
				Validators: []validator.String{stringvalidator.OneOf(liveMode, offlineMode, replaceMode)},
			},
			"timeout": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How long the memory of the running guest may be copied, such as `90s` or `20m`: after that it " +
					"stays where it is, and the apply fails, or post-copy begins. By default the update timeout alone limits it.",
				Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[1-9][0-9]{0,3}[sm]$`),
					"must be a number of seconds or minutes, such as 90s or 20m")},
			},
			"bandwidth": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "The most that is sent, in MiB/s. By default QEMU decides.",
				Validators: []validator.Int64{int64validator.Between(1, 1<<20)},
			},
			"auto_converge": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Slow a guest down that writes its memory faster than that is sent.",
			},
			"postcopy": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Have the guest run on the other host after `timeout`, while the rest of its memory is still " +
					"sent. If the network fails meanwhile, the guest is lost, as after a power cut.",
				Validators: []validator.Bool{boolvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("timeout"))},
			},
		},
	}}
}

func (m model) migration() migrationModel { return tfvalue.Fields[migrationModel](m.Migration) }

// way is how this machine is moved.
func (m model) way(force bool) machine.Move {
	is := m.migration()
	timeout, _ := time.ParseDuration(is.Timeout.ValueString()) // validated
	return machine.Move{
		Offline: is.Mode.ValueString() == offlineMode, Force: force,
		Migration: host.Migration{
			Timeout: timeout, Bandwidth: uint64(is.Bandwidth.ValueInt64()), AutoConverge: is.AutoConverge.ValueBool(),
			PostCopy: is.PostCopy.ValueBool(),
		},
	}
}

// moves reports whether the plan gives an existing machine another host.
func (m model) moves(state model) bool {
	return !state.Host.IsNull() && !m.Host.IsUnknown() && !m.Host.Equal(state.Host)
}

// planMove plans whether a machine with another host is moved. Otherwise it is replaced, or the plan is refused.
func (r *virtualMachine) planMove(ctx context.Context, plan, state model, diags *diag.Diagnostics) (replaces bool) {
	if !plan.moves(state) || diags.HasError() {
		return false
	}
	if r.Provider.Ready() && r.refuseStray(state, diags) {
		return false
	}
	mode := plan.migration().Mode.ValueString()
	if mode == replaceMode {
		return true
	}
	why := r.obstacles(ctx, plan, state, mode == offlineMode, diags)
	if len(why) == 0 {
		return false
	}
	text := fmt.Sprintf("Machine %s can't be moved to host %s: %s.", state.ID.ValueString(), plan.Host.ValueString(),
		strings.Join(why, "; "))
	if mode != "" || r.Provider.IsApplying() {
		diags.AddAttributeError(path.Root("host"), "The machine can't be moved", text+" migration = { mode = \"replace\" } replaces it.")
		return false
	}
	diags.AddAttributeWarning(path.Root("host"), "Machine "+state.ID.ValueString()+" is replaced, not moved", text+
		" So it is destroyed, and another one is created there. migration = { mode = \"live\" } refuses that.")
	return true
}

// refuseStray refuses to move a machine from a host to which others have migrated it, with its disks: the host that these are there for has
// an older copy of them at most.
func (r *virtualMachine) refuseStray(m model, diags *diag.Diagnostics) bool {
	disks := m.disks()
	for _, key := range slices.Sorted(maps.Keys(disks)) {
		if i := r.elsewhere(disks[key], m.Host.ValueString()); i != nil {
			diags.AddAttributeError(path.Root("host"), "A machine with disks of another host", fmt.Sprintf("Machine %s was migrated to "+
				"host %s. Its disk %s, %s, is virtclaim's on %s only, where it may be older. Migrate the machine back (virsh migrate).",
				m.Name.ValueString(), m.Host.ValueString(), key, i.Name, strings.Join(i.Hosts, ", ")))
			return true
		}
	}
	return false
}

// Settle completes or reverts the interrupted move of the machine of that UUID on the host of that key.
func Settle(d *providerdata.Data) func(ctx context.Context, key, uuid string) error {
	r := &virtualMachine{providerdata.Resource{Provider: d}}
	return func(ctx context.Context, key, uuid string) error {
		h, err := d.Hosts.Host(key)
		if err != nil {
			return err
		}
		return r.manager(h, key).Settle(ctx, uuid)
	}
}

// move moves the machine to the host of the plan, and stores that in the state.
func (r *virtualMachine) move(ctx context.Context, plan model, state *model, want domainxml.Machine, mgr machine.Manager,
	to *tfsdk.State, diags *diag.Diagnostics,
) bool {
	if !plan.moves(*state) {
		return true
	}
	err := mgr.MoveFrom(ctx, state.Host.ValueString(), plan.UUID.ValueString(), want, plan.way(plan.ForceStop.ValueBool()))
	if err != nil {
		addError(diags, *state, "The machine could not be moved to host "+plan.Host.ValueString(), err)
		return false
	}
	r.Provider.ReleaseName(state.Host.ValueString() + "/" + state.Name.ValueString())
	state.Host, state.ID = plan.Host, types.StringValue(plan.Host.ValueString()+"/"+state.Name.ValueString())
	diags.Append(to.SetAttribute(ctx, path.Root("host"), state.Host)...)
	diags.Append(to.SetAttribute(ctx, path.Root("id"), state.ID)...)
	return !diags.HasError()
}
