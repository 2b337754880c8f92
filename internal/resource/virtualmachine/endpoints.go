package virtualmachine

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var endpointsGroup = attributeGroup{attributes: endpointsAttributes, intent: noIntent, read: readEndpoints}

var endpointsTypes = attributesOf(endpointsAttributes()["endpoints"].GetType())

func endpointsAttributes() map[string]schema.Attribute {
	endpoint := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{"endpoints": schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "Displays and consoles of the running machine. They may change at each start. Null for devices that it " +
			"does not have, and while it is off.",
		Attributes: map[string]schema.Attribute{
			"serial":   endpoint("Pseudo-terminal of the serial port on the host, such as `/dev/pts/3`; `virsh console` connects to it."),
			"console":  endpoint("Pseudo-terminal of the virtio console on the host."),
			"graphics": endpoint("URI of the display, such as `vnc://127.0.0.1:5900` or `spice://127.0.0.1:5901`."),
		},
	}}
}

func readEndpoints(m *model, is domainxml.Machine) {
	m.Endpoints = types.ObjectValueMust(endpointsTypes, map[string]attr.Value{
		"serial": tfvalue.OrNull(is.Endpoints.Serial), "console": tfvalue.OrNull(is.Endpoints.Console),
		"graphics": tfvalue.OrNull(is.Endpoints.Graphics),
	})
}
