package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var watchdogGroup = attributeGroup{attributes: watchdogAttributes, intent: watchdogIntent, read: readWatchdog}

type watchdogModel struct {
	Model  types.String `tfsdk:"model"`
	Action types.String `tfsdk:"action"`
}

var watchdogTypes = attributesOf(watchdogAttributes()["watchdog"].GetType())

func watchdogAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"watchdog": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A watchdog, which acts when a guest that has started it stops responding. Changes take effect at the " +
			"next start. A default watchdog that newer versions of libvirt list is not shown here.",
		Attributes: map[string]schema.Attribute{
			"model": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("i6300esb"),
				MarkdownDescription: "`i6300esb` (default), `ib700`, `diag288` or, with newer versions of libvirt, `itco`.",
				Validators:          []validator.String{stringvalidator.OneOf("i6300esb", "ib700", "diag288", "itco")},
			},
			"action": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("reset"),
				MarkdownDescription: "`reset` (default), `shutdown`, `poweroff`, `pause`, `none`, `dump` or `inject-nmi`.",
				Validators: []validator.String{
					stringvalidator.OneOf("reset", "shutdown", "poweroff", "pause", "none", "dump", "inject-nmi"),
				},
			},
		},
	}}
}

func watchdogIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if m.Watchdog.IsNull() {
		return
	}
	w := tfvalue.Fields[watchdogModel](m.Watchdog)
	want.Watchdog = &domainxml.Watchdog{Model: w.Model.ValueString(), Action: w.Action.ValueString()}
}

func readWatchdog(m *model, is domainxml.Machine) {
	m.Watchdog = types.ObjectNull(watchdogTypes)
	if is.Watchdog != nil {
		m.Watchdog = types.ObjectValueMust(watchdogTypes, map[string]attr.Value{
			"model": types.StringValue(is.Watchdog.Model), "action": types.StringValue(is.Watchdog.Action),
		})
	}
}
