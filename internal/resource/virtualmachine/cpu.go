package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

var cpuGroup = group{attributes: cpuAttributes, intent: cpuIntent, read: readCPU, able: ableCPU}

type cpuModel struct {
	VCPUs types.Int64 `tfsdk:"vcpus"`
}

var cpuTypes = map[string]attr.Type{"vcpus": types.Int64Type}

func cpuAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"cpu": schema.SingleNestedAttribute{
		Optional: true, Computed: true, MarkdownDescription: "Processors. One by default.",
		Default: objectdefault.StaticValue(types.ObjectValueMust(cpuTypes, map[string]attr.Value{"vcpus": types.Int64Value(1)})),
		Attributes: map[string]schema.Attribute{
			"vcpus": schema.Int64Attribute{
				Required: true, MarkdownDescription: "Number of virtual processors.",
				Validators: []validator.Int64{int64validator.Between(1, 4096)},
			},
		},
	}}
}

func cpuIntent(ctx context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	var cpu cpuModel
	diags.Append(m.CPU.As(ctx, &cpu, asOptions)...)
	want.VCPUs = uint(cpu.VCPUs.ValueInt64())
}

func readCPU(m *model, is domainxml.Machine) {
	m.CPU = types.ObjectValueMust(cpuTypes, map[string]attr.Value{"vcpus": types.Int64Value(int64(is.VCPUs))})
}

func ableCPU(caps host.DomainCapabilities, want domainxml.Machine, diags *diag.Diagnostics) {
	if caps.MaxVCPUs > 0 && want.VCPUs > caps.MaxVCPUs {
		diags.AddAttributeError(path.Root("cpu").AtName("vcpus"), "Too many processors",
			fmt.Sprintf("A machine of type %s on this host has %d processors at most, not %d.", caps.Type, caps.MaxVCPUs, want.VCPUs))
	}
}
