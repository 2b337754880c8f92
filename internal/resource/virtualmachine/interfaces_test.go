package virtualmachine

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// with is a model with the interfaces a and b, which are valid except for what is set of b.
func with(set map[string]attr.Value) model {
	lan := domainxml.Interface{Network: "default", Model: "virtio", MAC: "52:54:00:00:00:01", BootOrder: 1}
	b := lan
	b.MAC, b.BootOrder = "52:54:00:00:00:02", 2
	values := interfaceObject(b).(types.Object).Attributes()
	maps.Copy(values, set)
	return model{Interfaces: types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, map[string]attr.Value{
		"a": interfaceObject(lan), "b": types.ObjectValueMust(interfaceTypes, values),
	})}
}

func TestInterfaces_ErrorsNameAttribute(t *testing.T) {
	of := types.StringValue
	port := func(kind string, id, profile types.String) attr.Value {
		return types.ObjectValueMust(virtualPortTypes, map[string]attr.Value{"type": of(kind), "interface_id": id, "profile_id": profile})
	}
	vlan := types.ObjectValueMust(vlanTypes, map[string]attr.Value{
		"tags": types.ListValueMust(types.Int64Type, []attr.Value{types.Int64Value(7)}), "trunk": types.BoolNull(),
	})
	bandwidth := func(in domainxml.Bandwidth) attr.Value {
		return types.ObjectValueMust(bandwidthTypes, map[string]attr.Value{
			"inbound":  bandwidthObject(domainxml.Interface{Inbound: in, Outbound: domainxml.Bandwidth{Average: 1}}).(types.Object).Attributes()["inbound"],
			"outbound": types.ObjectNull(limitTypes),
		})
	}
	limit, two := bandwidth(domainxml.Bandwidth{Average: 100}), types.Int64Value(2)
	for name, c := range map[string]struct {
		set    map[string]attr.Value
		at, is string
	}{
		"as it should be":            {},
		"on two things":              {map[string]attr.Value{"bridge": of("br0")}, `interfaces["b"]`, "on 2 of network, bridge, direct and user"},
		"on nothing":                 {map[string]attr.Value{"network": types.StringNull()}, `interfaces["b"]`, "on 0 of"},
		"not user":                   {map[string]attr.Value{"user": types.BoolValue(false)}, "", ""},
		"on what is not known":       {map[string]attr.Value{"network": types.StringUnknown()}, "", ""},
		"on one of two, not known":   {map[string]attr.Value{"bridge": types.StringUnknown()}, "", ""},
		"the same address":           {map[string]attr.Value{"mac": of("52:54:00:00:00:01")}, `interfaces["b"].mac`, "a and b both have 52:54:00:00:00:01"},
		"an address in capitals":     {map[string]attr.Value{"mac": of("52:54:00:00:00:AB")}, "", ""},
		"an address not known":       {map[string]attr.Value{"mac": types.StringUnknown()}, "", ""},
		"the same boot order":        {map[string]attr.Value{"boot_order": types.Int64Value(1)}, `interfaces["b"].boot_order`, "interface a and the interface b"},
		"a port group of a bridge":   {map[string]attr.Value{"network": types.StringNull(), "bridge": of("br0"), "port_group": of("x")}, `interfaces["b"].port_group`, "Set network"},
		"a VLAN in QEMU's network":   {map[string]attr.Value{"network": types.StringNull(), "user": types.BoolValue(true), "vlan": vlan}, `interfaces["b"].vlan`, "Leave it out"},
		"limits":                     {map[string]attr.Value{"bandwidth": limit, "queues": two}, "", ""},
		"no limit":                   {map[string]attr.Value{"bandwidth": bandwidth(domainxml.Bandwidth{})}, `interfaces["b"].bandwidth`, "without a limit"},
		"limits in QEMU's network":   {map[string]attr.Value{"network": types.StringNull(), "user": types.BoolValue(true), "bandwidth": limit}, `interfaces["b"].bandwidth`, "nothing knows of bandwidth"},
		"queues in QEMU's network":   {map[string]attr.Value{"network": types.StringNull(), "user": types.BoolValue(true), "queues": two}, `interfaces["b"].queues`, "nothing knows of queues"},
		"queues of another model":    {map[string]attr.Value{"model": of("e1000"), "queues": two}, `interfaces["b"].queues`, "Interface b is an e1000"},
		"a port that lacks its id":   {map[string]attr.Value{"virtual_port": port("midonet", types.StringNull(), types.StringNull())}, `interfaces["b"].virtual_port.interface_id`, "needs interface_id"},
		"a port that has no such id": {map[string]attr.Value{"virtual_port": port("802.1Qbh", of("x"), of("y"))}, `interfaces["b"].virtual_port.interface_id`, "has no interface_id"},
		"a port of a switch":         {map[string]attr.Value{"virtual_port": port("openvswitch", types.StringNull(), types.StringUnknown())}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			m := with(c.set)
			m.checkBootOrder(&diags)
			checkInterfaces(t.Context(), m, &diags)
			if c.is == "" && diags.HasError() || c.is != "" && diags.ErrorsCount() != 1 {
				t.Fatal(diags)
			}
			if c.is == "" {
				return
			}
			at := diags[0].(diag.DiagnosticWithPath).Path().String()
			if at != c.at || !strings.Contains(diags[0].Detail(), c.is) {
				t.Errorf("%s: %s", at, diags[0].Detail())
			}
		})
	}
}

func TestInterfaces_KeepConfiguredSpelling(t *testing.T) {
	trunk := types.ObjectValueMust(vlanTypes, map[string]attr.Value{
		"tags": types.ListValueMust(types.Int64Type, []attr.Value{types.Int64Value(7), types.Int64Value(8)}), "trunk": types.BoolValue(false),
	})
	m := with(map[string]attr.Value{"mac": types.StringValue("52:54:00:00:00:AB"), "vlan": trunk, "user": types.BoolValue(false)})
	before := m.Interfaces
	is := domainxml.Machine{Interfaces: map[string]domainxml.Interface{
		"a": {Network: "default", Model: "virtio", MAC: "52:54:00:00:00:01", BootOrder: 1},
		"b": {Network: "default", Model: "virtio", MAC: "52:54:00:00:00:ab", BootOrder: 2, VLAN: &domainxml.VLAN{Tags: []uint{7, 8}, Trunk: true}},
	}}
	if readInterfaces(&m, is); !m.Interfaces.Equal(before) {
		t.Errorf("read back differs: %s", m.Interfaces)
	}
	b := is.Interfaces["b"]
	b.Down = true
	is.Interfaces["b"] = b
	if readInterfaces(&m, is); m.Interfaces.Equal(before) {
		t.Error("another link is no drift")
	}
}
