package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

var addressesGroup = attributeGroup{attributes: addressesAttributes, intent: noIntent, read: readAddresses, check: checkWaitFor}

var addressesType = types.ListType{ElemType: types.StringType}

func addressesAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"addresses": schema.MapAttribute{
			Computed: true, ElementType: addressesType,
			MarkdownDescription: "IP addresses by the key of the interface, as of the last refresh: those that the guest agent " +
				"reports (`guest_agent`), or else the DHCP leases of libvirt's networks, and on other networks those in the host's " +
				"ARP table. Link-local addresses (`fe80::`) are left out. An interface without addresses has an empty list, as in a " +
				"guest that is booting for the first time; later boots list the lease of the previous run until it is renewed (see " +
				"`wait_for`). A plan keeps the addresses of unchanged interfaces, unless the machine is started or stopped.",
		},
		"wait_for": waitForAttribute(),
	}
}

func noIntent(context.Context, model, *domainxml.Machine, *diag.Diagnostics) {}

func readAddresses(m *model, is domainxml.Machine) {
	all := map[string]attr.Value{}
	for key := range is.Interfaces {
		addresses := []attr.Value{}
		for _, a := range is.Addresses[key] {
			addresses = append(addresses, types.StringValue(a))
		}
		all[key] = types.ListValueMust(types.StringType, addresses)
	}
	m.Addresses = types.MapValueMust(addressesType, all)
}

// planAddresses keeps the known addresses. Unknown are those of an interface that is new or is changed to another device, those that the
// apply waits for, and all of them if the machine starts or stops.
func (m *model) planAddresses(ctx context.Context, state model, diags *diag.Diagnostics) {
	if m.Interfaces.IsUnknown() {
		m.Addresses = types.MapUnknown(addressesType)
		return
	}
	if m.Addresses = state.Addresses; m.Addresses.IsNull() && len(m.Interfaces.Elements()) == 0 {
		return // a state from before this attribute existed
	}
	restarts, awaits := m.startsOrStops(state), m.awaitsAt(ctx, state, diags)
	before, known, planned := state.Interfaces.Elements(), state.Addresses.Elements(), map[string]attr.Value{}
	for key, element := range m.Interfaces.Elements() {
		is, has := known[key].(types.List)
		planned[key] = is
		if !has || restarts || isRewired(ctx, before[key], element) || len(is.Elements()) == 0 && awaits(key) {
			planned[key] = types.ListUnknown(types.StringType)
		}
	}
	m.Addresses = types.MapValueMust(addressesType, planned)
}

// startsOrStops reports whether the machine's addresses may change by a start or stop. Of all changes that may restart it, only the agent's
// port changes the source of its addresses.
func (m model) startsOrStops(state model) bool {
	mayRestart := !m.AllowRestart.Equal(types.BoolValue(false))
	return !m.Running.Equal(state.Running) || m.moves(state) || m.agentChanges(state) && mayRestart
}

// agentChanges reports whether the agent's port is added or removed; null and false both mean that there is none.
func (m model) agentChanges(state model) bool {
	return m.GuestAgent.IsUnknown() || m.GuestAgent.ValueBool() != state.GuestAgent.ValueBool()
}

// isRewired reports whether an interface has changed, or may have, in anything but its boot order.
func isRewired(ctx context.Context, was, is attr.Value) bool {
	value, err := is.ToTerraformValue(ctx)
	before, after := interfaceOf(was), interfaceOf(is)
	before.BootOrder = after.BootOrder
	return err != nil || !value.IsFullyKnown() || !before.Has(after)
}

// fillAddresses sets addresses that were unknown in the plan; the others stay as planned.
func (m *model) fillAddresses(actual types.Map) {
	if m.Addresses.IsUnknown() {
		m.Addresses = actual
		return
	}
	elements, found := m.Addresses.Elements(), actual.Elements()
	for key, planned := range elements {
		if planned.IsUnknown() {
			is, _ := found[key].(types.List)
			elements[key] = types.ListValueMust(types.StringType, is.Elements())
		}
	}
	m.Addresses = types.MapValueMust(addressesType, elements)
}
