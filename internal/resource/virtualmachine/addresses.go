package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

var addressesGroup = group{attributes: addressesAttributes, intent: noIntent, read: readAddresses, check: checkWaitFor}

var addressesType = types.ListType{ElemType: types.StringType}

func addressesAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"addresses": schema.MapAttribute{
			Computed: true, ElementType: addressesType,
			MarkdownDescription: "IP addresses by the key of the interface, as they were when the machine was last looked at: what the guest's agent " +
				"says, where there is one (`guest_agent`) that answers, or else the leases of libvirt's networks, and on other networks what the host has " +
				"seen of the guest. Addresses of one link only (`fe80::`) are left out. An interface without one has an empty list. A guest that has " +
				"just been started has none yet: see `wait_for`.",
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

// planAddresses keeps what is known of the addresses unless the machine is reached in another way: then nobody can tell.
func (m *model) planAddresses(state model) {
	m.Addresses = state.Addresses
	if !m.reachedAs(state) {
		m.Addresses = types.MapUnknown(addressesType)
	}
}

// reachedAs tells whether the machine neither starts nor stops, and whether its interfaces, its agent's port and what it is
// waited for are the same.
func (m model) reachedAs(state model) bool {
	return m.Running.Equal(state.Running) && m.Interfaces.Equal(state.Interfaces) && m.GuestAgent.Equal(state.GuestAgent) && m.WaitFor.Equal(state.WaitFor)
}

// reach adds to a machine, which runs, the addresses of its interfaces.
func (l life) reach(ctx context.Context, uuid string, is *domainxml.Machine) {
	is.Addresses = map[string][]string{}
	if len(is.Interfaces) == 0 {
		return
	}
	byMAC := l.host.Addresses(ctx, uuid, is.AgentConnected)
	for key, i := range is.Interfaces {
		is.Addresses[key] = byMAC[i.MAC]
	}
}
