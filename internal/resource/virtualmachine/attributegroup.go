package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// attributeGroup is what a user says of one part of a machine: its attributes, what they ask for, and how they are read back.
type attributeGroup struct {
	attributes func() map[string]schema.Attribute
	// intent adds what a wholly known plan asks for.
	intent func(context.Context, model, *domainxml.Machine, *diag.Diagnostics)
	// read fills the model with what a machine really is.
	read func(*model, domainxml.Machine)
	// check refuses what can't be had, as far as it is known, at plan time and again at apply; nil where all can.
	check func(context.Context, model, *diag.Diagnostics)
	// able refuses what the host is not capable of, before anything is made; nil where all hosts are.
	able func(host.DomainCapabilities, domainxml.Machine, *diag.Diagnostics)
}

var groups = []attributeGroup{
	cpuGroup, memoryGroup, hardwareGroup, bootGroup, disksGroup, interfacesGroup, addressesGroup, guestAgentGroup, serialGroup, namesGroup,
	powerGroup, firmwareGroup, tpmGroup, graphicsGroup, videoGroup, rngGroup, watchdogGroup, consoleGroup, filesystemsGroup, devicesXMLGroup,
	pendingGroup, endpointsGroup,
}

func (m model) check(ctx context.Context, diags *diag.Diagnostics) {
	for _, g := range groups {
		if g.check != nil {
			g.check(ctx, m, diags)
		}
	}
}
