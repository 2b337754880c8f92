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

var (
	serialGroup = attributeGroup{
		attributes: func() map[string]schema.Attribute {
			return map[string]schema.Attribute{"serial": portAttribute("A serial port, reached with `virsh console`.")}
		},
		intent: func(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
			if !m.Serial.IsNull() {
				want.Serial = &domainxml.Serial{LogFile: tfvalue.Fields[portModel](m.Serial).LogFile.ValueString()}
			}
		},
		read: func(m *model, is domainxml.Machine) {
			m.Serial = types.ObjectNull(portTypes)
			if is.Serial != nil {
				m.Serial = portObject(is.Serial.LogFile)
			}
		},
	}
	consoleGroup = attributeGroup{
		attributes: func() map[string]schema.Attribute {
			return map[string]schema.Attribute{"console": portAttribute("A virtio console, `hvc0` in Linux: faster than `serial`, " +
				"but only available when the guest has loaded its driver. Changes take effect at the next start.")}
		},
		intent: func(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
			if !m.Console.IsNull() {
				want.Console = &domainxml.Console{LogFile: tfvalue.Fields[portModel](m.Console).LogFile.ValueString()}
			}
		},
		read: func(m *model, is domainxml.Machine) {
			m.Console = types.ObjectNull(portTypes)
			if is.Console != nil {
				m.Console = portObject(is.Console.LogFile)
			}
		},
	}
)

// portModel is a serial port or a console, which have the same attributes.
type portModel struct {
	LogFile types.String `tfsdk:"log_file"`
}

var portTypes = attributesOf(portAttribute("").GetType())

func portAttribute(description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"log_file": pathAttribute("File on the host to which the output is appended. A volume of a storage pool, or a disk of "+
				"any machine, is refused, as far as the path shows it: use a folder that only root can write to, because libvirt "+
				"follows symbolic links.", false, tfvalue.NoDevice()),
		},
	}
}

func portObject(logFile string) types.Object {
	return types.ObjectValueMust(portTypes, map[string]attr.Value{"log_file": tfvalue.OrNull(logFile)})
}
