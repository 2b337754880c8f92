package virtualmachine

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

func bandwidthAttribute() schema.Attribute {
	limit := func(what string) schema.Attribute {
		positive := []validator.Int64{int64validator.AtLeast(1)}
		return schema.SingleNestedAttribute{
			Optional: true, MarkdownDescription: "Limit of what the guest " + what + ".",
			Attributes: map[string]schema.Attribute{
				"average": schema.Int64Attribute{Required: true, MarkdownDescription: "Average rate, in KiB/s.", Validators: positive},
				"peak":    schema.Int64Attribute{Optional: true, MarkdownDescription: "Rate of bursts, in KiB/s.", Validators: positive},
				"burst":   schema.Int64Attribute{Optional: true, MarkdownDescription: "Size of a burst, in KiB.", Validators: positive},
			},
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "Limits of the traffic. Not with `user`. Changed live; on a `network`, removing it takes " +
			"effect at the next start.",
		Attributes: map[string]schema.Attribute{"inbound": limit("receives"), "outbound": limit("sends")},
	}
}

var (
	bandwidthTypes = attributesOf(bandwidthAttribute().GetType())
	limitTypes     = attributesOf(bandwidthTypes["inbound"])
)

func bandwidthOf(v attr.Value) domainxml.Bandwidth {
	b := fieldsOf(v)
	return domainxml.Bandwidth{Average: b.number("average"), Peak: b.number("peak"), Burst: b.number("burst")}
}

func bandwidthObject(i domainxml.Interface) attr.Value {
	limit := func(b domainxml.Bandwidth) attr.Value {
		if b == (domainxml.Bandwidth{}) {
			return types.ObjectNull(limitTypes)
		}
		return types.ObjectValueMust(limitTypes, map[string]attr.Value{
			"average": numberOrNull(b.Average), "peak": numberOrNull(b.Peak), "burst": numberOrNull(b.Burst),
		})
	}
	in, out := limit(i.Inbound), limit(i.Outbound)
	if in.IsNull() && out.IsNull() {
		return types.ObjectNull(bandwidthTypes)
	}
	return types.ObjectValueMust(bandwidthTypes, map[string]attr.Value{"inbound": in, "outbound": out})
}

func (i interfaceModel) checkBandwidth(key string, diags *diag.Diagnostics) {
	b := fieldsOf(i.Bandwidth)
	if isSet(i.Bandwidth) && b["inbound"].IsNull() && b["outbound"].IsNull() {
		diags.AddAttributeError(interfacePath(key).AtName("bandwidth"), "No limit",
			fmt.Sprintf("Interface %s has a bandwidth without a limit. Add inbound or outbound, or leave bandwidth out.", key))
	}
}

// checkDriver refuses options of other models, for which libvirt ignores them.
func (i interfaceModel) checkDriver(key string, diags *diag.Diagnostics) {
	model := i.Model.ValueString()
	if model == "" || strings.HasPrefix(model, "virtio") {
		return
	}
	for name, value := range map[string]attr.Value{"queues": i.Queues, "rx_queue_size": i.RXQueueSize, "driver": i.Driver} {
		if !value.IsNull() {
			diags.AddAttributeError(interfacePath(key).AtName(name), "An option of virtio",
				fmt.Sprintf("Interface %s is an %s, and %s is for virtio. Leave it out, or use the model virtio.", key, model, name))
		}
	}
}
