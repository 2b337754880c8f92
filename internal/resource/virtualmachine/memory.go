package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var memoryGroup = group{attributes: memoryAttributes, intent: memoryIntent, read: readMemory}

func memoryAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"memory": schema.StringAttribute{
		Required: true, CustomType: tfvalue.QuantityType{},
		MarkdownDescription: "Memory as a Kubernetes quantity, such as `512Mi` or `2Gi`. Rounded up to whole KiB.",
	}}
}

func memoryIntent(_ context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	kib, err := m.Memory.KiB()
	if err != nil {
		diags.AddAttributeError(path.Root("memory"), "Invalid quantity", err.Error())
	}
	want.Memory = kib
}

func readMemory(m *model, is domainxml.Machine) {
	m.Memory = m.Memory.OrSame(tfvalue.QuantityOfKiB(is.Memory))
}
