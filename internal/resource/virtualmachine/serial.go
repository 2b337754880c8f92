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

var serialGroup = group{attributes: serialAttributes, intent: serialIntent, read: readSerial}

type serialModel struct {
	LogFile types.String `tfsdk:"log_file"`
}

var serialTypes = map[string]attr.Type{"log_file": types.StringType}

func serialAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"serial": schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "A serial port, reached with `virsh console`.",
		Attributes: map[string]schema.Attribute{
			"log_file": pathAttribute("File on the host that keeps all that the guest writes to the port.", false),
		},
	}}
}

func serialIntent(ctx context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	if m.Serial.IsNull() {
		return
	}
	var serial serialModel
	diags.Append(m.Serial.As(ctx, &serial, asOptions)...)
	want.Serial = &domainxml.Serial{LogFile: serial.LogFile.ValueString()}
}

func readSerial(m *model, is domainxml.Machine) {
	m.Serial = types.ObjectNull(serialTypes)
	if is.Serial != nil {
		m.Serial = types.ObjectValueMust(serialTypes, map[string]attr.Value{"log_file": tfvalue.OrNull(is.Serial.LogFile)})
	}
}
