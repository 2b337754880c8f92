package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var consoleGroup = group{attributes: consoleAttributes, intent: consoleIntent, read: readConsole}

type consoleModel struct {
	LogFile types.String `tfsdk:"log_file"`
}

var consoleTypes = map[string]attr.Type{"log_file": types.StringType}

func consoleAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"console": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A virtio console, `hvc0` to Linux: faster than `serial`, and beside it, but there only when the guest has loaded its " +
			"driver. A change takes effect at the next start.",
		Attributes: map[string]schema.Attribute{
			"log_file": pathAttribute("File on the host that keeps all that the guest writes to the console.", false),
		},
	}}
}

func consoleIntent(ctx context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	if m.Console.IsNull() {
		return
	}
	var c consoleModel
	diags.Append(m.Console.As(ctx, &c, asOptions)...)
	want.Console = &domainxml.Console{LogFile: c.LogFile.ValueString()}
}

func readConsole(m *model, is domainxml.Machine) {
	m.Console = types.ObjectNull(consoleTypes)
	if is.Console != nil {
		m.Console = types.ObjectValueMust(consoleTypes, map[string]attr.Value{"log_file": tfvalue.OrNull(is.Console.LogFile)})
	}
}
