package virtualmachine

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
)

var powerGroup = attributeGroup{attributes: powerAttributes, intent: powerIntent, read: readPower}

func powerAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"state": schema.StringAttribute{
			Computed: true, PlanModifiers: []planmodifier.String{stateWhileItRuns{}},
			MarkdownDescription: "libvirt's domain state, such as `running`, `paused`, `crashed` or `shut off`. Each plan warns of a " +
				"machine that is paused, crashed or suspended, with libvirt's reason and the remedy. ` (transient)` is appended if " +
				"the machine runs without a stored definition (`virsh undefine`): the next apply defines it again while it runs.",
		},
		"autostart": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Whether the host starts the machine when the host boots. Changed live.",
		},
		"allow_restart": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
			MarkdownDescription: "Allow an update to shut the machine down and start it again, within the update timeout, for " +
				"changes that can't be made live, or if the guest does not acknowledge an unplug or has no port for a device. Otherwise such changes are stored " +
				"and take effect at the next start, with a warning. It also allows an update to discard what the guest has written " +
				"to a deleted file; the plan warns of that.",
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
	case strings.HasSuffix(req.StateValue.ValueString(), transient):
		resp.PlanValue = types.StringUnknown()
	case was.Equal(is):
		resp.PlanValue = req.StateValue
	}
}

// power is how an update may start and stop the machine: whether it is to run, whether it may be forced off if the guest does not shut
// down, whether it may be restarted for changes that a running guest can't get, and whether its autostart is another one than in the state.
type power struct{ on, force, restart, autostart bool }

func (m model) power(state model) power {
	return power{on: m.Running.ValueBool(), force: m.ForceStop.ValueBool(), restart: m.AllowRestart.ValueBool(), autostart: !m.Autostart.Equal(state.Autostart)}
}

// restart shuts the guest down, changes the machine while it is off, and starts it. why is what the running guest can't get, or did not release.
// The guard checks again, because another machine may have got the storage since.
func (m manager) restart(ctx context.Context, uuid string, want domainxml.Machine, force bool, why error) error {
	tflog.Info(ctx, "Restarting the machine", map[string]any{"machine": want.Name, "cause": why.Error()})
	at, err := m.see(ctx, uuid)
	if err == nil && at.live != nil {
		err = m.checkStorage(ctx, uuid, want, disksToCheck(nil, want, true))
	}
	if err == nil {
		err = m.persist(ctx, uuid, at)
	}
	if err != nil {
		return fmt.Errorf("%w\n\nIt was to be restarted (allow_restart), which would fail, so the machine was not shut down: %w", why, err)
	}
	if at, err = m.stopped(ctx, uuid, at, force); err != nil {
		return fmt.Errorf("%w\n\nIt was to be restarted (allow_restart), and the machine could not be shut down: %w", why, err)
	}
	ctx, cancel := revert.Extend(ctx) // the guest may have used up the time, and a machine is not left off
	defer cancel()
	if _, _, err = m.afresh().reconcile(ctx, uuid, at, want, true); err == nil {
		err = m.boot(ctx, uuid)
	}
	if err != nil {
		return fmt.Errorf("it was shut down for a restart, and is off: %w", err)
	}
	return nil
}
