package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

var guestAgentGroup = attributeGroup{attributes: guestAgentAttributes, intent: guestAgentIntent, read: readGuestAgent}

func guestAgentAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"guest_agent": schema.BoolAttribute{
		Optional: true,
		MarkdownDescription: "A channel for QEMU's guest agent (the package `qemu-guest-agent` in the guest), which reports the " +
			"guest's addresses, shuts it down (`shutdown_mode`) and puts new processors online. Changes take effect at the next start.",
	}}
}

func guestAgentIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.GuestAgent = m.GuestAgent.ValueBool()
}

// readGuestAgent keeps null or false, which both mean that there is none.
func readGuestAgent(m *model, is domainxml.Machine) {
	if m.GuestAgent.ValueBool() != is.GuestAgent {
		m.GuestAgent = types.BoolNull()
		if is.GuestAgent {
			m.GuestAgent = types.BoolValue(true)
		}
	}
}
