package virtualmachine

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var pendingGroup = attributeGroup{attributes: pendingAttributes, intent: noIntent, read: readPending}

func pendingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"pending": schema.ListAttribute{
			Computed: true, ElementType: types.StringType,
			MarkdownDescription: "Pending changes, such as `cpu` or `disk root`: they are stored and take effect when the running " +
				"machine is shut down and started again. Each plan reports them until then; with `allow_restart` the next apply " +
				"restarts the machine.",
		},
	}
}

func readPending(m *model, is domainxml.Machine) {
	all := make([]attr.Value, 0, len(is.Pending))
	for _, what := range is.Pending {
		all = append(all, types.StringValue(what))
	}
	m.Pending = types.ListValueMust(types.StringType, all)
}

// pending are the names of the changes that are pending for the next start.
func (m model) pending(ctx context.Context, diags *diag.Diagnostics) (all []string) {
	diags.Append(m.Pending.ElementsAs(ctx, &all, false)...)
	return all
}

// planRunning plans the attributes of the running guest beside others to set. If nothing else changes, they stay, and pending changes are
// reported again, or applied if a restart is allowed: a failed or killed apply may not have reported them.
func (m model) planRunning(ctx context.Context, state model, set map[string]attr.Value, req resource.ModifyPlanRequest,
	resp *resource.ModifyPlanResponse,
) {
	set["pending"], set["endpoints"], set["exit_code"] = state.Pending, state.Endpoints, state.ExitCode
	if !m.Running.Equal(state.Running) {
		set["exit_code"] = types.Int64Unknown()
	}
	resp.Diagnostics.Append(tfvalue.SetAttributes(ctx, &resp.Plan, set)...)
	changes, restarts := !resp.Plan.Raw.Equal(req.State.Raw), m.AllowRestart.ValueBool()
	waiting := state.pending(ctx, &resp.Diagnostics)
	if !changes && len(waiting) > 0 && !restarts {
		m.warnOfPending(waiting, &resp.Diagnostics)
	}
	if !changes && (len(waiting) == 0 || !restarts) {
		return
	}
	changed := map[string]attr.Value{"pending": types.ListUnknown(types.StringType)}
	if restarts || !m.Running.Equal(state.Running) || m.moves(state) {
		changed["endpoints"] = types.ObjectUnknown(endpointsTypes)
	}
	resp.Diagnostics.Append(tfvalue.SetAttributes(ctx, &resp.Plan, changed)...)
	if m.Running.ValueBool() && state.Running.ValueBool() {
		m.warnOfRestart(state.was(ctx), m.was(ctx), &resp.Diagnostics)
	}
}

// warnOfRestart warns of more memory or processors than a running guest can be given.
func (m model) warnOfRestart(now, want domainxml.Machine, diags *diag.Diagnostics) {
	var beyond []string
	if most := max(now.Memory, now.MaxMemory); want.Memory > most && most > 0 {
		beyond = append(beyond, fmt.Sprintf("memory = %q exceeds %s", m.Memory.ValueString(), tfvalue.QuantityOfKiB(most).ValueString()))
	}
	if most := max(now.VCPUs, now.MaxVCPUs); want.VCPUs > most && most > 0 {
		beyond = append(beyond, fmt.Sprintf("vcpus = %d exceeds %d", want.VCPUs, most))
	}
	if len(beyond) == 0 || diags.HasError() { // what is refused is not stored
		return
	}
	summary, what := "Machine %s needs a restart",
		"The apply stores the change, which takes effect at the next start. Set allow_restart to restart the guest"
	if m.AllowRestart.ValueBool() {
		summary, what = "Machine %s is restarted", "The apply restarts the guest (allow_restart)"
	}
	diags.AddWarning(fmt.Sprintf(summary, m.Name.ValueString()), fmt.Sprintf("The maximum of the running guest is lower: %s. %s. "+
		"max_memory and max_vcpus leave room for later changes.", strings.Join(beyond, ", and "), what))
}

// warnOfPending warns of the changes that the running guest does not have yet.
func (m model) warnOfPending(pending []string, diags *diag.Diagnostics) {
	if len(pending) == 0 {
		return
	}
	// Of several warnings with one summary Terraform shows only the first.
	diags.AddWarning(fmt.Sprintf("What changes on machine %s takes effect at its next start", m.Name.ValueString()),
		fmt.Sprintf("Machine %s on host %s runs and can't be given this while it does: %s. It is in its stored definition, and takes "+
			"effect when the machine is shut down and started again. A reboot from inside the guest is not enough.",
			m.Name.ValueString(), m.Host.ValueString(), strings.Join(pending, ", ")))
}
