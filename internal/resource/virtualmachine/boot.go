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

var bootGroup = attributeGroup{attributes: bootAttributes, intent: bootIntent, read: readBoot}

type bootModel struct {
	Kernel  types.String `tfsdk:"kernel"`
	Initrd  types.String `tfsdk:"initrd"`
	Cmdline types.String `tfsdk:"cmdline"`
}

var bootTypes = attributesOf(bootAttributes()["boot"].GetType())

func bootAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"boot": schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "A kernel to boot directly instead of from a disk. Paths are on the host.",
		Attributes: map[string]schema.Attribute{
			"kernel": pathAttribute("Path of the kernel.", true),
			"initrd": pathAttribute("Path of the initial RAM disk.", false),
			"cmdline": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The kernel's command line. The disk that its `root=` names, such as `/dev/vda1`, counts as what " +
					"the machine boots from, and is not unplugged from the running guest. If it names none by its `target`, as " +
					"`root=UUID=…`, that is the first disk.",
			},
		},
	}}
}

func bootIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if m.Boot.IsNull() {
		return
	}
	boot := tfvalue.Fields[bootModel](m.Boot)
	want.Boot = &domainxml.Boot{
		Kernel: boot.Kernel.ValueString(), Initrd: boot.Initrd.ValueString(), Cmdline: boot.Cmdline.ValueString(),
	}
}

// readBoot keeps an empty command line, which means the same as none.
func readBoot(m *model, is domainxml.Machine) {
	before := m.Boot.Attributes()["cmdline"]
	m.Boot = types.ObjectNull(bootTypes)
	if is.Boot != nil {
		cmdline := tfvalue.OrNull(is.Boot.Cmdline)
		if cmdline.IsNull() && before != nil && before.Equal(types.StringValue("")) {
			cmdline = types.StringValue("")
		}
		m.Boot = types.ObjectValueMust(bootTypes, map[string]attr.Value{
			"kernel": tfvalue.OrNull(is.Boot.Kernel), "initrd": tfvalue.OrNull(is.Boot.Initrd), "cmdline": cmdline,
		})
	}
}
