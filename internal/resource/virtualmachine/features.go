package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var featuresGroup = attributeGroup{attributes: featuresAttributes, intent: featuresIntent, read: readFeatures, check: checkFeatures}

type featuresModel struct {
	HyperV types.Bool `tfsdk:"hyperv"`
}

var featuresTypes = attributesOf(featuresAttributes()["features"].GetType())

func featuresAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"features": schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Features of the virtual hardware; others are set in `domain_xml`. Changes take effect at the next start.",
		Attributes: map[string]schema.Attribute{
			"hyperv": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "The Hyper-V enlightenments that QEMU recommends for Windows guests: `relaxed`, `vapic`, " +
					"`spinlocks`, `vpindex`, `runtime`, `synic`, `stimer` with `direct`, `reset`, `frequencies`, " +
					"`tlbflush` and `ipi`. Another set is written in `domain_xml`. Needs KVM and the timer " +
					"`hypervclock` of `clock`.",
			},
		},
	}}
}

// checkFeatures refuses what QEMU would not start.
func checkFeatures(_ context.Context, m model, diags *diag.Diagnostics) {
	hasHyperV := tfvalue.Fields[featuresModel](m.Features).HyperV.ValueBool()
	timers := tfvalue.Fields[clockModel](m.Clock).Timers
	timer := objects[timerModel](timers)["hypervclock"]
	isUnknown := m.Clock.IsUnknown() || timers.IsUnknown() || timer.Present.IsUnknown()
	if hasHyperV && !isUnknown && !timer.Present.ValueBool() {
		diags.AddAttributeError(path.Root("clock"), "Enlightenments need the timer hypervclock",
			"QEMU does not start a machine with features.hyperv without it. Set clock = { timers = { hypervclock = { present = true } } "+
				"}, and for Windows offset = \"localtime\".")
	}
	if hasHyperV && m.Running.ValueBool() && m.machine().DomainType.ValueString() == "qemu" {
		diags.AddAttributeError(path.Root("features").AtName("hyperv"), "Enlightenments need KVM",
			"QEMU does not start an emulated machine (domain_type = \"qemu\") with them. Use kvm, or leave hyperv out.")
	}
}

func featuresIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.HyperV = tfvalue.Fields[featuresModel](m.Features).HyperV.ValueBool()
}

// readFeatures shows what a machine does not have only where the state does.
func readFeatures(m *model, is domainxml.Machine) {
	was := tfvalue.Fields[featuresModel](m.Features)
	switch {
	case is.HyperV || was.HyperV.ValueBool():
		was.HyperV = types.BoolValue(is.HyperV)
	case m.Features.IsNull():
		m.Features = types.ObjectNull(featuresTypes)
		return
	}
	m.Features = types.ObjectValueMust(featuresTypes, map[string]attr.Value{"hyperv": was.HyperV})
}
