package virtualmachine

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var interfacesGroup = attributeGroup{
	attributes: interfacesAttributes, intent: interfacesIntent, read: readInterfaces,
	check: checkInterfaces,
}

type interfaceModel struct {
	Network     types.String `tfsdk:"network"`
	PortGroup   types.String `tfsdk:"port_group"`
	Bridge      types.String `tfsdk:"bridge"`
	Direct      types.Object `tfsdk:"direct"`
	User        types.Bool   `tfsdk:"user"`
	Model       types.String `tfsdk:"model"`
	MAC         types.String `tfsdk:"mac"`
	BootOrder   types.Int64  `tfsdk:"boot_order"`
	Link        types.String `tfsdk:"link"`
	MTU         types.Int64  `tfsdk:"mtu"`
	VLAN        types.Object `tfsdk:"vlan"`
	VirtualPort types.Object `tfsdk:"virtual_port"`
	Queues      types.Int64  `tfsdk:"queues"`
	RXQueueSize types.Int64  `tfsdk:"rx_queue_size"`
	Driver      types.String `tfsdk:"driver"`
	Bandwidth   types.Object `tfsdk:"bandwidth"`
}

type virtualPortModel struct {
	Type        types.String `tfsdk:"type"`
	InterfaceID types.String `tfsdk:"interface_id"`
	ProfileID   types.String `tfsdk:"profile_id"`
}

var (
	interfaceTypes   = attributesOf(interfacesAttributes()["interfaces"].GetType())
	directTypes      = attributesOf(interfaceTypes["direct"])
	vlanTypes        = attributesOf(interfaceTypes["vlan"])
	virtualPortTypes = attributesOf(interfaceTypes["virtual_port"])
)

// interfacePath is the path of an interface in the configuration.
func interfacePath(key string) path.Path { return path.Root("interfaces").AtMapKey(key) }

// interfaces are the interfaces by key, as far as they are known.
func (m model) interfaces() map[string]interfaceModel {
	return objects[interfaceModel](m.Interfaces)
}

func interfacesIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	want.Interfaces = map[string]domainxml.Interface{}
	for key, element := range m.Interfaces.Elements() {
		want.Interfaces[key] = interfaceOf(element)
	}
}

// interfaceOf converts an interface's value.
func interfaceOf(element attr.Value) domainxml.Interface {
	i := fieldsOf(element)
	want := domainxml.Interface{
		Network: i.text("network"), PortGroup: i.text("port_group"), Bridge: i.text("bridge"), User: i.is("user"),
		Model: i.text("model"), MAC: strings.ToLower(i.text("mac")), BootOrder: i.number("boot_order"), Down: i.text("link") == "down",
		MTU: i.number("mtu"),
		Driver: domainxml.InterfaceDriver{
			Name: i.text("driver"), Queues: i.number("queues"), RXQueueSize: i.number("rx_queue_size"),
		},
	}
	b := fieldsOf(i["bandwidth"])
	want.Inbound, want.Outbound = bandwidthOf(b["inbound"]), bandwidthOf(b["outbound"])
	if isSet(i["direct"]) {
		d := fieldsOf(i["direct"])
		want.Direct = domainxml.Direct{Dev: d.text("dev"), Mode: d.text("mode")}
	}
	if isSet(i["vlan"]) {
		v := fieldsOf(i["vlan"])
		want.VLAN = &domainxml.VLAN{Trunk: v.is("trunk")}
		tags, _ := v["tags"].(types.List)
		for _, tag := range tags.Elements() {
			want.VLAN.Tags = append(want.VLAN.Tags, fields{"tag": tag}.number("tag"))
		}
	}
	if isSet(i["virtual_port"]) {
		p := fieldsOf(i["virtual_port"])
		want.VirtualPort = &domainxml.VirtualPort{
			Type: p.text("type"), InterfaceID: p.text("interface_id"),
			ProfileID: p.text("profile_id"),
		}
	}
	return want
}

// fields are the attributes of an object's value; null and unknown ones read as empty.
type fields map[string]attr.Value

func fieldsOf(v attr.Value) fields {
	o, _ := v.(types.Object)
	return o.Attributes()
}

func (f fields) text(name string) string {
	s, _ := f[name].(types.String)
	return s.ValueString()
}

func (f fields) is(name string) bool {
	b, _ := f[name].(types.Bool)
	return b.ValueBool()
}

func (f fields) number(name string) uint {
	n, _ := f[name].(types.Int64)
	return uint(n.ValueInt64())
}

// isSet reports whether a value is neither null nor unknown. It is false for nil, too: an unknown element has no attributes.
func isSet(v attr.Value) bool { return v != nil && !v.IsNull() && !v.IsUnknown() }

// readInterfaces keeps null or an empty map, which both mean that there is no interface. An unchanged interface keeps the model's spelling.
func readInterfaces(m *model, is domainxml.Machine) {
	if len(is.Interfaces) == 0 && len(m.Interfaces.Elements()) == 0 {
		return
	}
	before, interfaces := m.Interfaces.Elements(), map[string]attr.Value{}
	for key, i := range is.Interfaces {
		if b, had := before[key]; had && i.Has(interfaceOf(b)) {
			interfaces[key] = withMAC(b, i.MAC)
		} else {
			interfaces[key] = interfaceObject(i)
		}
	}
	m.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, interfaces)
}

// withMAC adds an address to an interface's value without one.
func withMAC(element attr.Value, mac string) attr.Value {
	o, ok := element.(types.Object)
	if !ok || o.IsUnknown() || o.IsNull() || isSet(o.Attributes()["mac"]) {
		return element
	}
	values := o.Attributes()
	values["mac"] = types.StringValue(mac)
	return types.ObjectValueMust(interfaceTypes, values)
}

// fillMACs sets the generated addresses of planned interfaces that have none in the configuration.
func (m *model) fillMACs(is domainxml.Machine) {
	elements := m.Interfaces.Elements()
	if len(elements) == 0 {
		return
	}
	for key, element := range elements {
		elements[key] = withMAC(element, is.Interfaces[key].MAC)
	}
	m.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, elements)
}

// spellInterfaces keeps the state's spelling of addresses that are equal in the plan.
func (m *model) spellInterfaces(state model) {
	before, elements := state.interfaces(), m.Interfaces.Elements()
	for key, i := range m.interfaces() {
		was := before[key].MAC
		if isSet(was) && !was.Equal(i.MAC) && strings.EqualFold(was.ValueString(), i.MAC.ValueString()) {
			values := elements[key].(types.Object).Attributes()
			values["mac"] = was
			elements[key] = types.ObjectValueMust(interfaceTypes, values)
		}
	}
	if len(elements) > 0 {
		m.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, elements)
	}
}

func interfaceObject(i domainxml.Interface) attr.Value {
	values := map[string]attr.Value{
		"network": tfvalue.OrNull(i.Network), "port_group": tfvalue.OrNull(i.PortGroup), "bridge": tfvalue.OrNull(i.Bridge),
		"direct": types.ObjectNull(directTypes), "user": types.BoolNull(),
		"model": types.StringValue(i.Model), "mac": types.StringValue(i.MAC), "boot_order": numberOrNull(i.BootOrder),
		"link": types.StringValue("up"), "mtu": numberOrNull(i.MTU),
		"vlan": types.ObjectNull(vlanTypes), "virtual_port": types.ObjectNull(virtualPortTypes),
		"driver": tfvalue.OrNull(i.Driver.Name), "queues": numberOrNull(i.Driver.Queues),
		"rx_queue_size": numberOrNull(i.Driver.RXQueueSize),
		"bandwidth":     bandwidthObject(i),
	}
	if i.Direct != (domainxml.Direct{}) {
		values["direct"] = types.ObjectValueMust(directTypes, map[string]attr.Value{
			"dev": types.StringValue(i.Direct.Dev), "mode": types.StringValue(i.Direct.Mode),
		})
	}
	if i.User {
		values["user"] = types.BoolValue(true)
	}
	if i.Down {
		values["link"] = types.StringValue("down")
	}
	if i.VLAN != nil {
		var tags []attr.Value
		for _, tag := range i.VLAN.Tags {
			tags = append(tags, types.Int64Value(int64(tag)))
		}
		trunk := types.BoolNull()
		if len(tags) == 1 && i.VLAN.Trunk {
			trunk = types.BoolValue(true)
		}
		values["vlan"] = types.ObjectValueMust(vlanTypes,
			map[string]attr.Value{"tags": types.ListValueMust(types.Int64Type, tags), "trunk": trunk})
	}
	if p := i.VirtualPort; p != nil {
		values["virtual_port"] = types.ObjectValueMust(virtualPortTypes, map[string]attr.Value{
			"type": types.StringValue(p.Type), "interface_id": tfvalue.OrNull(p.InterfaceID), "profile_id": tfvalue.OrNull(p.ProfileID),
		})
	}
	return types.ObjectValueMust(interfaceTypes, values)
}
