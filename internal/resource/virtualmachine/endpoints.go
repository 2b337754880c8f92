package virtualmachine

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var endpointsGroup = attributeGroup{attributes: endpointsAttributes, intent: noIntent, read: readEndpoints}

var endpointsTypes = map[string]attr.Type{"serial": types.StringType, "console": types.StringType, "graphics": types.StringType}

func endpointsAttributes() map[string]schema.Attribute {
	endpoint := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{"endpoints": schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "Where the running machine is to be seen. They may be others after each start; what it has not, and all while it is off, " +
			"is null.",
		Attributes: map[string]schema.Attribute{
			"serial":  endpoint("Terminal of the host that is the serial port, such as `/dev/pts/3`; `virsh console` connects to it."),
			"console": endpoint("Terminal of the host that is the virtio console."),
			"graphics": endpoint("URI of the display with the address of the host that it is served at, such as `vnc://127.0.0.1:5900` " +
				"or `spice://127.0.0.1:5901`."),
		},
	}}
}

func readEndpoints(m *model, is domainxml.Machine) {
	m.Endpoints = types.ObjectValueMust(endpointsTypes, map[string]attr.Value{
		"serial": tfvalue.OrNull(is.Endpoints.Serial), "console": tfvalue.OrNull(is.Endpoints.Console),
		"graphics": tfvalue.OrNull(is.Endpoints.Graphics),
	})
}
