package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
)

// The values of shutdown_mode.
const (
	agentMode = "agent"
	acpiMode  = "acpi"
)

var powerGroup = attributeGroup{attributes: powerAttributes, intent: powerIntent, read: readPower}

func powerAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"state": schema.StringAttribute{
			Computed: true, PlanModifiers: []planmodifier.String{stateWhileItRuns{}},
			MarkdownDescription: "libvirt's domain state, such as `running`, `paused`, `crashed` or `shut off`. Each plan warns of a " +
				"machine that is paused, crashed or suspended, with libvirt's reason and the remedy. ` (transient)` is appended if " +
				"the machine runs without a stored definition (`virsh undefine`): the next apply defines it again while it runs; " +
				"` (moving)` if a move to another host was interrupted, or its former host still has a definition: the next apply " +
				"completes that.",
		},
		"autostart": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Whether the host starts the machine when the host boots. Changed live.",
		},
		"allow_restart": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Allow an update to shut the machine down and start it again, within the update timeout, for " +
				"changes that can't be made live, or if the guest does not acknowledge an unplug or has no port for a device. Otherwise " +
				"such changes are stored and take effect at the next start, with a warning. It also allows an update to discard what the " +
				"guest has written to a deleted file; the plan warns of that.",
		},
		"shutdown_mode": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(agentMode),
			Validators: []validator.String{stringvalidator.OneOf(agentMode, acpiMode)},
			MarkdownDescription: "How the guest is shut down. `agent` asks the guest agent, where the machine runs with the port of one " +
				"(`guest_agent`), and presses the power button (ACPI) if there is none that answers, or if the guest is not off within " +
				"ten seconds. `acpi` presses the button alone. Defaults to `agent`. As with `force_stop`, a destroy uses the value " +
				"applied last.",
		},
	}
}

func powerIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.Autostart = m.Autostart.ValueBool()
}

func readPower(m *model, is domainxml.Machine) {
	m.State, m.Autostart = types.StringValue(is.State), types.BoolValue(is.Autostart)
	if m.AllowRestart.IsNull() {
		m.AllowRestart = types.BoolValue(false) // an import: no host knows of it
	}
	if m.ShutdownMode.IsNull() {
		m.ShutdownMode = types.StringValue(agentMode) // the same
	}
}

// stateWhileItRuns plans the value in state, unless the update starts or stops the machine.
type stateWhileItRuns struct{}

func (stateWhileItRuns) Description(context.Context) string {
	return "The state stays while the machine is not started or stopped."
}

func (m stateWhileItRuns) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (stateWhileItRuns) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.State.Raw.IsNull() || req.StateValue.IsNull() {
		return
	}
	var was, is types.Bool
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("running"), &was)...)
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("running"), &is)...)
	switch {
	case strings.HasSuffix(req.StateValue.ValueString(), transient), strings.HasSuffix(req.StateValue.ValueString(), moving):
		resp.PlanValue = types.StringUnknown()
	case was.Equal(is):
		resp.PlanValue = req.StateValue
	}
}

func (m model) power(state model) machine.Power {
	return machine.Power{
		On: m.Running.ValueBool(), Force: m.ForceStop.ValueBool(), Restart: m.AllowRestart.ValueBool(),
		Autostart: !m.Autostart.Equal(state.Autostart), Once: m.runsOnce() && state.Running.ValueBool(),
	}
}

// keepSettings stores the attributes that only a later destroy reads, also if this update fails: otherwise force_stop could never be
// set for a guest that makes each update fail.
func (m model) keepSettings(ctx context.Context, state *tfsdk.State, diags *diag.Diagnostics) {
	diags.Append(state.SetAttribute(ctx, path.Root("force_stop"), m.ForceStop)...)
	diags.Append(state.SetAttribute(ctx, path.Root("shutdown_mode"), m.ShutdownMode)...)
	diags.Append(state.SetAttribute(ctx, path.Root("timeouts"), m.Timeouts)...)
}

// ofDestroy adds to the error of a destroy how it can succeed. It uses the attributes of the last apply, and as part of a replacement no
// apply can set others.
func (m model) ofDestroy(err error) error {
	if !errors.Is(err, host.ErrStillRunning) {
		return err
	}
	return fmt.Errorf("%w\n\nA destroy, also that of a replacement, uses what was applied last. Turn the machine's power off on its "+
		"host, and repeat the command:\n\n    virsh destroy %s\n\nOr, if nothing else in its configuration has changed, apply force_stop "+
		"= true or longer timeouts first",
		err, m.Name.ValueString())
}
