package virtualmachine

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// reached is a running machine with an address at a and none at b.
func reached() model {
	m := with(nil)
	m.Running, m.AllowRestart, m.GuestAgent = types.BoolValue(true), types.BoolValue(false), types.BoolNull()
	m.WaitFor = types.ObjectNull(nil)
	readAddresses(&m, domainxml.Machine{
		Interfaces: map[string]domainxml.Interface{"a": {}, "b": {}}, Addresses: map[string][]string{"a": {"192.0.2.1"}},
	})
	return m
}

// wire sets an attribute of the interface of that key, which it adds as a copy of b if it is missing.
func (m *model) wire(key, name string, value attr.Value) {
	elements := m.Interfaces.Elements()
	values := elements["b"].(types.Object).Attributes()
	if o, has := elements[key].(types.Object); has {
		values = o.Attributes()
	}
	values[name] = value
	elements[key] = types.ObjectValueMust(interfaceTypes, values)
	m.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, elements)
}

func TestAddresses_KnownAtPlan(t *testing.T) {
	const known, unknown = "known", "unknown"
	stay := map[string]string{"a": known, "b": known}
	none := map[string]string{"a": unknown, "b": unknown}
	aStays := map[string]string{"a": known, "b": unknown}
	for name, c := range map[string]struct {
		change func(state, plan *model)
		want   map[string]string
	}{
		"nothing": {func(_, _ *model) {}, stay},
		"an interface is added": {
			func(_, plan *model) { plan.wire("c", "mac", types.StringUnknown()) },
			map[string]string{"a": known, "b": known, "c": unknown},
		},
		"an interface is removed": {func(_, plan *model) {
			elements := plan.Interfaces.Elements()
			delete(elements, "b")
			plan.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, elements)
		}, map[string]string{"a": known}},
		"all interfaces are removed": {func(_, plan *model) {
			plan.Interfaces = types.MapNull(types.ObjectType{AttrTypes: interfaceTypes})
		}, map[string]string{}},
		"the interfaces are not known": {func(_, plan *model) {
			plan.Interfaces = types.MapUnknown(types.ObjectType{AttrTypes: interfaceTypes})
		}, nil},
		"an interface is not known": {func(_, plan *model) {
			elements := plan.Interfaces.Elements()
			elements["b"] = types.ObjectUnknown(interfaceTypes)
			plan.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, elements)
		}, aStays},
		"another network":                     {func(_, plan *model) { plan.wire("b", "network", types.StringValue("red")) }, aStays},
		"a network that is not known":         {func(_, plan *model) { plan.wire("b", "network", types.StringUnknown()) }, aStays},
		"the link":                            {func(_, plan *model) { plan.wire("b", "link", types.StringValue("down")) }, aStays},
		"another address of the card":         {func(_, plan *model) { plan.wire("b", "mac", types.StringValue("52:54:00:00:00:03")) }, aStays},
		"the order to boot":                   {func(_, plan *model) { plan.wire("b", "boot_order", types.Int64Value(7)) }, stay},
		"another spelling of the same":        {func(_, plan *model) { plan.wire("b", "user", types.BoolValue(false)) }, stay},
		"starts":                              {func(state, _ *model) { state.Running = types.BoolValue(false) }, none},
		"stops":                               {func(_, plan *model) { plan.Running = types.BoolValue(false) }, none},
		"may stop":                            {func(_, plan *model) { plan.Running = types.BoolUnknown() }, none},
		"the agent's port, at the next start": {func(_, plan *model) { plan.GuestAgent = types.BoolValue(true) }, stay},
		"the agent's port, by a restart": {func(_, plan *model) {
			plan.GuestAgent, plan.AllowRestart = types.BoolValue(true), types.BoolValue(true)
		}, none},
		"the agent's port, still none": {func(_, plan *model) {
			plan.GuestAgent, plan.AllowRestart = types.BoolValue(false), types.BoolValue(true)
		}, stay},
		"waited for what is there":          {func(_, plan *model) { plan.waitAt(t, keySet("a")) }, stay},
		"waited for what is not there":      {func(_, plan *model) { plan.waitAt(t, keySet("a", "b")) }, aStays},
		"waited for, nobody knows for what": {func(_, plan *model) { plan.waitAt(t, types.SetUnknown(types.StringType)) }, aStays},
		"waited for no more":                {func(state, _ *model) { state.waitAt(t, keySet("a", "b")) }, stay},
		"waited for already": {func(state, plan *model) {
			state.waitAt(t, keySet("b"))
			plan.waitAt(t, keySet("b"))
		}, stay},
		"waited for again, with a new interface": {func(state, plan *model) {
			state.waitAt(t, keySet("b"))
			plan.waitAt(t, keySet("b"))
			plan.wire("c", "mac", types.StringUnknown())
		}, map[string]string{"a": known, "b": unknown, "c": unknown}},
		"waited for where the link is down": {func(state, plan *model) {
			for _, m := range []*model{state, plan} {
				m.wire("b", "link", types.StringValue("down"))
			}
			plan.waitAt(t, keySet("b"))
		}, stay},
		"waited for while it is off": {func(state, plan *model) {
			state.Running, plan.Running = types.BoolValue(false), types.BoolValue(false)
			plan.waitAt(t, keySet("b"))
		}, stay},
	} {
		t.Run(name, func(t *testing.T) {
			state, plan := reached(), reached()
			c.change(&state, &plan)
			var diags diag.Diagnostics
			plan.planAddresses(t.Context(), state, &diags)
			if diags.HasError() {
				t.Fatal(diags)
			}
			var got map[string]string
			if !plan.Addresses.IsUnknown() {
				got = map[string]string{}
			}
			for key, planned := range plan.Addresses.Elements() {
				got[key] = known
				if planned.IsUnknown() {
					got[key] = unknown
				} else if !planned.Equal(state.Addresses.Elements()[key]) {
					t.Errorf("%s is planned as %s", key, planned)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkFilled(t, plan)
		})
	}
}

// checkFilled checks that an apply returns the planned values, whatever the machine's present ones are.
func checkFilled(t *testing.T, plan model) {
	t.Helper()
	var is, applied model
	readAddresses(&is, domainxml.Machine{
		Interfaces: map[string]domainxml.Interface{"a": {}, "b": {}, "more": {}}, Addresses: map[string][]string{"a": {"192.0.2.9"}, "b": {"192.0.2.8"}},
	})
	applied = plan
	applied.fillAddresses(is.Addresses)
	if plan.Addresses.IsUnknown() {
		if !applied.Addresses.Equal(is.Addresses) {
			t.Errorf("applied is %s", applied.Addresses)
		}
		return
	}
	planned, got, actual := plan.Addresses.Elements(), applied.Addresses.Elements(), is.Addresses.Elements()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(planned)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("other keys are applied (-planned +applied):\n%s", diff)
	}
	for key, want := range planned {
		if want.IsUnknown() {
			if want = actual[key]; want == nil {
				want = types.ListValueMust(types.StringType, nil)
			}
		}
		if !got[key].Equal(want) {
			t.Errorf("applied at %s is %s, not %s", key, got[key], want)
		}
	}
}
