package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var lifecycleGroup = attributeGroup{attributes: lifecycleAttributes, intent: lifecycleIntent, read: readLifecycle}

func lifecycleAttributes() map[string]schema.Attribute {
	action := func(description string, values ...string) schema.Attribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: description + " Changed live.",
			Validators: []validator.String{stringvalidator.OneOf(values...)},
		}
	}
	return map[string]schema.Attribute{
		"on_reboot": action("What libvirt does when the guest reboots: `restart` (default), or `destroy`, with which the machine is off "+
			"after that, as installers want it.", "restart", "destroy"),
		"on_crash": action("What libvirt does when the guest panics, which it sees if there is a `<panic>` device (see `devices_xml`): "+
			"`destroy` (default), `restart`, `preserve`, `coredump-destroy` or `coredump-restart`; the last two write the guest's "+
			"memory to a file on the host.", "destroy", "restart", "preserve", "coredump-destroy", "coredump-restart"),
	}
}

// lifecycleIntent leaves out libvirt's defaults.
func lifecycleIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if is := m.OnReboot.ValueString(); is != domainxml.UsualOnReboot {
		want.OnReboot = is
	}
	if is := m.OnCrash.ValueString(); is != domainxml.UsualOnCrash {
		want.OnCrash = is
	}
}

// readLifecycle shows libvirt's defaults only where the state does.
func readLifecycle(m *model, is domainxml.Machine) {
	shown := func(was types.String, is, usual string) types.String {
		if is == "" && !was.IsNull() {
			is = usual
		}
		return tfvalue.OrNull(is)
	}
	m.OnReboot = shown(m.OnReboot, is.OnReboot, domainxml.UsualOnReboot)
	m.OnCrash = shown(m.OnCrash, is.OnCrash, domainxml.UsualOnCrash)
}
