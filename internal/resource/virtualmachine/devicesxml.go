package virtualmachine

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var devicesXMLGroup = attributeGroup{
	attributes: devicesXMLAttributes, intent: devicesXMLIntent, read: readDevicesXML, check: checkDevicesXML,
}

func devicesXMLAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"devices_xml": schema.StringAttribute{
		Optional: true, PlanModifiers: []planmodifier.String{sameXML{domainxml.CanonicalDevices}},
		MarkdownDescription: "Devices that have no attribute here, such as `<sound>`, `<hostdev>`, `<input>` or `<panic>`: one or more " +
			"elements as in libvirt's domain XML. Changing it replaces the devices of the previous text, and no others. Changes take " +
			"effect at the next start. Only devices that open no file, storage or socket of the host are taken: `<sound>`, `<input>`, " +
			"`<panic>`, `<hub>`, `<crypto>`, `<controller>`, `<vsock>`, `<memballoon>` in place of libvirt's own, " +
			"`<hostdev mode='subsystem'>` of type `usb`, `pci` or `mdev`, and `<channel>`, `<redirdev>` and " +
			"`<smartcard mode='passthrough'>` of type `spicevmc`. No attribute of theirs may name a path.\n\n" +
			"The data source `virtclaim_host` lists the host's devices, each with its `<hostdev>`. A machine that is to run with one " +
			"that the host lacks, or that another running domain there has, is refused by the plan; so give a device from one machine to " +
			"another in two applies. A `<hostdev>` may be a controller with disks: make sure that these have no other users.",
	}}
}

func devicesXMLIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.DevicesXML = m.DevicesXML.ValueString()
}

func readDevicesXML(m *model, is domainxml.Machine) { m.DevicesXML = tfvalue.OrNull(is.DevicesXML) }

func checkDevicesXML(_ context.Context, m model, diags *diag.Diagnostics) {
	if m.DevicesXML.IsNull() || m.DevicesXML.IsUnknown() {
		return
	}
	if err := domainxml.CheckDevices(m.DevicesXML.ValueString()); err != nil {
		diags.AddAttributeError(path.Root("devices_xml"), "Devices that can't be added", "Of devices_xml: "+err.Error()+".")
	}
}
