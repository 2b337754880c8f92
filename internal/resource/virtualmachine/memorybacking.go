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

var memoryBackingGroup = attributeGroup{
	attributes: memoryBackingAttributes, intent: memoryBackingIntent, read: readMemoryBacking, check: checkMemoryBacking,
}

type memoryBackingModel struct {
	HugePages types.Bool       `tfsdk:"huge_pages"`
	PageSize  tfvalue.Quantity `tfsdk:"huge_page_size"`
	Shared    types.Bool       `tfsdk:"shared"`
}

var (
	memoryBackingTypes = attributesOf(memoryBackingAttributes()["memory_backing"].GetType())
	pageSizePath       = path.Root("memory_backing").AtName("huge_page_size")
)

func memoryBackingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"memory_backing": schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "The host's memory behind that of the guest. Changes take effect at the next start.",
		Attributes: map[string]schema.Attribute{
			"huge_pages": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Use huge pages, of which the host must have enough free ones (`vm.nr_hugepages`) whenever the " +
					"machine starts.",
			},
			"huge_page_size": schema.StringAttribute{
				Optional: true, CustomType: tfvalue.QuantityType{},
				MarkdownDescription: "Their size, such as `2Mi` or `1Gi`; by default the host's.",
			},
			"shared": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Let other processes of the host map it, as vhost-user devices need it. Machines with `virtiofs` " +
					"filesystems always do.",
			},
		},
	}}
}

func checkMemoryBacking(_ context.Context, m model, diags *diag.Diagnostics) {
	b := tfvalue.Fields[memoryBackingModel](m.MemoryBacking)
	if isSet(b.PageSize) && !b.HugePages.IsUnknown() && !b.HugePages.ValueBool() {
		diags.AddAttributeError(pageSizePath, "A page size without huge pages", "Set huge_pages = true, or leave huge_page_size out.")
	}
}

func memoryBackingIntent(_ context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	b := tfvalue.Fields[memoryBackingModel](m.MemoryBacking)
	want.MemoryBacking = domainxml.MemoryBacking{HugePages: b.HugePages.ValueBool(), Shared: b.Shared.ValueBool()}
	if isSet(b.PageSize) {
		var err error
		if want.MemoryBacking.PageSize, err = b.PageSize.KiB(); err != nil {
			diags.AddAttributeError(pageSizePath, "Invalid quantity", err.Error())
		}
	}
}

// readMemoryBacking shows what a machine does not have only where the state does.
func readMemoryBacking(m *model, is domainxml.Machine) {
	if m.MemoryBacking.IsNull() && is.MemoryBacking == (domainxml.MemoryBacking{}) {
		m.MemoryBacking = types.ObjectNull(memoryBackingTypes)
		return
	}
	was := tfvalue.Fields[memoryBackingModel](m.MemoryBacking)
	size := tfvalue.Quantity{StringValue: types.StringNull()}
	if is.MemoryBacking.PageSize != 0 {
		size = was.PageSize.OrSame(tfvalue.QuantityOfKiB(is.MemoryBacking.PageSize))
	}
	m.MemoryBacking = types.ObjectValueMust(memoryBackingTypes, map[string]attr.Value{
		"huge_pages": trueOrSaid(was.HugePages, is.MemoryBacking.HugePages), "huge_page_size": size,
		"shared": trueOrSaid(was.Shared, is.MemoryBacking.Shared),
	})
}

// trueOrSaid is a value that is null if it is false and was null.
func trueOrSaid(was types.Bool, is bool) types.Bool {
	if !is && was.IsNull() {
		return was
	}
	return types.BoolValue(is)
}
