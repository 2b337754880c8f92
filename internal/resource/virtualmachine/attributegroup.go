package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// attributeGroup is one part of a machine: its attributes, the domain that they describe, and how they are read back.
type attributeGroup struct {
	attributes func() map[string]schema.Attribute
	// intent adds what a wholly known plan configures.
	intent func(context.Context, model, *domainxml.Machine, *diag.Diagnostics)
	// read fills the model with the machine's actual values.
	read func(*model, domainxml.Machine)
	// check refuses invalid values, as far as they are known, at plan and again at apply; nil if all are valid.
	check func(context.Context, model, *diag.Diagnostics)
	// able refuses what the host does not support, before anything is created; nil if all hosts support it.
	able func(host.DomainCapabilities, domainxml.Machine, *diag.Diagnostics)
}

var groups = []attributeGroup{
	cpuGroup, memoryGroup, hardwareGroup, bootGroup, fwCfgGroup, disksGroup, interfacesGroup, runGroup,
	addressesGroup, guestAgentGroup, serialGroup, namesGroup,
	powerGroup, firmwareGroup, tpmGroup, graphicsGroup, videoGroup, rngGroup, watchdogGroup, consoleGroup, filesystemsGroup,
	devicesXMLGroup, clockGroup, lifecycleGroup, featuresGroup, memoryBackingGroup, domainXMLGroup,
	pendingGroup, endpointsGroup, migrationGroup,
}

func (m model) check(ctx context.Context, diags *diag.Diagnostics) {
	for _, g := range groups {
		if g.check != nil {
			g.check(ctx, m, diags)
		}
	}
}
