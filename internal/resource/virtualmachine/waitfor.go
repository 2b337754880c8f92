package virtualmachine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// waitTime is the default timeout of wait_for.
const waitTime = 2 * time.Minute

var duration = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)

type waitForModel struct {
	Addresses types.Set    `tfsdk:"addresses"`
	Agent     types.Bool   `tfsdk:"agent"`
	CloudInit types.Bool   `tfsdk:"cloud_init"`
	Timeout   types.String `tfsdk:"timeout"`
}

func waitForAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Conditions for which an apply waits that starts the machine, or changes its interfaces, its guest " +
			"agent or this attribute. If they are not met in time, that is a warning, because the machine exists. Conditions that " +
			"can't be met are not waited for: those of a machine that is off, an address while the link is down, and the agent, and " +
			"what it tells, while its channel is pending until the next start.",
		Attributes: map[string]schema.Attribute{
			"addresses": schema.SetAttribute{
				Optional: true, ElementType: types.StringType, MarkdownDescription: "Keys of `interfaces` that must have an IP address. " +
					"After a start, the lease of the previous run does not count until the guest has renewed it.",
				Validators: []validator.Set{setvalidator.SizeAtLeast(1)},
			},
			"agent": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether the guest agent must be connected (`guest_agent`).",
			},
			"cloud_init": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether cloud-init must have ended in this boot, which the guest agent tells: it must be allowed " +
					"to read files. Its errors are a warning, and so is an agent that may not. First boots take minutes: set `timeout`.",
			},
			"timeout": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Timeout, such as `90s`. Defaults to `2m`, and is limited by the timeout of the " +
					"operation.",
				Validators: []validator.String{stringvalidator.RegexMatches(duration, "must be a time such as 90s or 5m")},
			},
		},
	}
}

// endOfCloudInit is what is missing while cloud-init goes on.
const endOfCloudInit = "end of cloud-init"

// waitFor is what the apply waits for; empty if it is not set.
func (m model) waitFor(ctx context.Context, diags *diag.Diagnostics) (w waitForModel, keys []types.String) {
	w = tfvalue.Fields[waitForModel](m.WaitFor)
	if isSet(w.Addresses) {
		diags.Append(w.Addresses.ElementsAs(ctx, &keys, true)...)
	}
	return w, keys
}

// checkWaitFor refuses to wait for what can never be reached.
func checkWaitFor(ctx context.Context, m model, diags *diag.Diagnostics) {
	w, keys := m.waitFor(ctx, diags)
	noAgent := !m.GuestAgent.IsUnknown() && !m.GuestAgent.ValueBool()
	if w.Agent.ValueBool() && noAgent {
		diags.AddAttributeError(path.Root("wait_for").AtName("agent"), "No agent to wait for",
			"The machine has no port for an agent, so that none can answer. Set guest_agent = true, or leave this out.")
	}
	if w.CloudInit.ValueBool() && noAgent {
		diags.AddAttributeError(path.Root("wait_for").AtName("cloud_init"), "No agent to wait for",
			"Only an agent tells when cloud-init has ended, and the machine has no port for one. Set guest_agent = true, or leave this "+
				"out.")
	}
	interfaces := m.Interfaces.Elements()
	for _, key := range keys {
		element, has := interfaces[key.ValueString()]
		switch {
		case key.IsUnknown() || m.Interfaces.IsUnknown():
		case !has:
			diags.AddAttributeError(path.Root("wait_for").AtName("addresses"), "No interface to wait for",
				fmt.Sprintf("The machine has no interface %s, so that it can't get an address there. Name keys of interfaces.",
					key.ValueString()))
		case noAgent && interfaceOf(element).User:
			diags.AddAttributeError(path.Root("wait_for").AtName("addresses"), "No source of addresses",
				fmt.Sprintf("Interface %s has user-mode networking (user), where only the guest agent reports addresses, and the "+
					"machine has no channel for one. Set guest_agent = true, or leave the interface out of wait_for.", key.ValueString()))
		}
	}
}

// waits reports whether an update waits for what wait_for names.
func (m model) waits(state model) bool {
	return !m.Running.Equal(state.Running) || !m.Interfaces.Equal(state.Interfaces) || m.agentChanges(state) ||
		!m.WaitFor.Equal(state.WaitFor)
}

// awaitsAt reports for interfaces, by key, whether an update waits, or may wait, for an address there.
func (m model) awaitsAt(ctx context.Context, state model, diags *diag.Diagnostics) func(key string) bool {
	w, keys := m.waitFor(ctx, diags)
	interfaces, waits := m.Interfaces.Elements(), m.waits(state) && !m.Running.Equal(types.BoolValue(false))
	return func(key string) bool {
		named := slices.ContainsFunc(keys, func(k types.String) bool { return k.IsUnknown() || k.ValueString() == key })
		return waits && (named || w.Addresses.IsUnknown() || m.WaitFor.IsUnknown()) && !interfaceOf(interfaces[key]).Down
	}
}

// await waits until the machine has what wait_for names, if it is to run. A timeout is only a warning, because after an error Terraform
// would destroy the machine.
func (m model) await(ctx context.Context, l machine.Manager, diags *diag.Diagnostics) {
	w, keys := m.waitFor(ctx, diags)
	if !m.Running.ValueBool() || len(keys) == 0 && !w.Agent.ValueBool() && !w.CloudInit.ValueBool() {
		return
	}
	timeout, err := time.ParseDuration(w.Timeout.ValueString())
	if err != nil {
		timeout = waitTime
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var cloudInit machine.CloudInit
	misses := func(now domainxml.Machine) []string {
		if w.CloudInit.ValueBool() && now.AgentConnected && !cloudInit.IsOver() {
			l.LookAtCloudInit(ctx, m.UUID.ValueString(), &cloudInit)
		}
		return m.missing(w, now, keys, cloudInit.IsOver())
	}
	is, missing, err := l.Await(ctx, m.UUID.ValueString(), misses)
	if err != nil {
		until, why := fmt.Sprintf("within %s", timeout), err.Error()
		switch {
		case errors.Is(err, context.Canceled):
			until, why = "until the interruption", "It was not waited for any longer."
		case errors.Is(err, context.DeadlineExceeded) && slices.Contains(missing, endOfCloudInit):
			why = fmt.Sprintf("cloud-init status --long tells more, if the image has it. The agent's last error: %s.",
				host.Answer(cloudInit.Why))
		case errors.Is(err, context.DeadlineExceeded):
			why = fmt.Sprintf("On the host, its console tells more (virsh console %s, with serial = {}), and virsh net-dhcp-leases.",
				m.Name.ValueString())
		}
		diags.AddAttributeWarning(path.Root("wait_for"), "What was waited for has not come",
			fmt.Sprintf("Machine %s on host %s: %s there was no %s. It is left as it is, and looked at again at the "+
				"next refresh. %s", m.Name.ValueString(), m.Host.ValueString(), until, strings.Join(missing, ", no "), why))
	}
	m.warnOfCloudInit(cloudInit, diags)
	withPort := is
	withPort.AgentPort = true
	if is.GuestAgent && !is.AgentPort && len(m.missing(w, withPort, keys, cloudInit.IsOver())) > 0 {
		diags.AddAttributeWarning(path.Root("wait_for"), "The agent was not waited for",
			fmt.Sprintf("Machine %s on host %s runs without the port of its agent (guest_agent), which comes with its next start: shut "+
				"it down and start it again. Until then there is no agent, and no address that only an agent tells.", m.Name.ValueString(),
				m.Host.ValueString()))
	}
}

// missing is what a running machine lacks of wait_for, and may get while it runs.
func (m model) missing(w waitForModel, is domainxml.Machine, keys []types.String, cloudInit bool) (missing []string) {
	interfaces := m.Interfaces.Elements()
	for _, key := range keys {
		i := interfaceOf(interfaces[key.ValueString()])
		canCome := !i.Down && (!i.User || is.AgentPort) // on QEMU's user network only the agent reports addresses
		if canCome && len(is.Addresses[key.ValueString()]) == 0 {
			missing = append(missing, "address at interface "+key.ValueString())
		}
	}
	waitsForInit := w.CloudInit.ValueBool() && !cloudInit
	switch {
	case (w.Agent.ValueBool() || waitsForInit) && is.AgentPort && !is.AgentConnected:
		missing = append(missing, "agent")
	case waitsForInit && is.AgentPort:
		missing = append(missing, endOfCloudInit)
	}
	slices.Sort(missing)
	return missing
}

// warnOfCloudInit warns of errors of cloud-init, which the guest tells, and of an agent that tells nothing.
func (m model) warnOfCloudInit(c machine.CloudInit, diags *diag.Diagnostics) {
	at := path.Root("wait_for").AtName("cloud_init")
	where := fmt.Sprintf("Machine %s on host %s", m.Name.ValueString(), m.Host.ValueString())
	if c.Refused {
		diags.AddAttributeWarning(at, "cloud-init was not waited for", fmt.Sprintf("%s: its agent does not tell: %s. In its guest, have "+
			"qemu-ga allow them (--allow-rpcs, or BLOCK_RPCS in /etc/sysconfig/qemu-ga), or wait for addresses.", where, c.Why))
	}
	if len(c.Errors) > 0 {
		diags.AddAttributeWarning(at, "cloud-init has failed", fmt.Sprintf("%s: the first of %d errors of cloud-init is %s. In its guest, "+
			"cloud-init status --long and /var/log/cloud-init.log tell more.", where, len(c.Errors), host.Quoted(c.Errors[0])))
	}
}
