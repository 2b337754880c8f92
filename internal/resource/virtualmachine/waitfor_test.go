package virtualmachine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// waitAt configures wait_for with addresses at those interfaces.
func (m *model) waitAt(t *testing.T, addresses types.Set) {
	t.Helper()
	m.WaitFor = types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
		"addresses": addresses, "agent": types.BoolNull(), "timeout": types.StringNull(),
	})
}

func keySet(keys ...string) types.Set {
	var values []attr.Value
	for _, key := range keys {
		values = append(values, types.StringValue(key))
	}
	return types.SetValueMust(types.StringType, values)
}

func TestWaitFor_Impossible(t *testing.T) {
	const notCome, noAgent = "What was waited for has not come", "The agent was not waited for"
	for name, c := range map[string]struct {
		stored, runs bool // whether the definition and the running machine have the agent's port
		agent        bool
		addresses    []string
		want         []string
	}{
		"the agent": {stored: true, runs: true, agent: true, want: []string{notCome}},
		"an agent whose port comes with the next start": {stored: true, agent: true, want: []string{noAgent}},
		"an address":                                     {addresses: []string{"lan"}, want: []string{notCome}},
		"an address that the agent might tell":           {stored: true, addresses: []string{"lan"}, want: []string{noAgent, notCome}},
		"an address that only the agent tells":           {stored: true, runs: true, addresses: []string{"own"}, want: []string{notCome}},
		"the same before the port is there":              {stored: true, addresses: []string{"own"}, want: []string{noAgent}},
		"an address where the link is down":              {addresses: []string{"down"}},
		"an address where the link is down, and no port": {stored: true, addresses: []string{"down"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Interfaces: map[string]domainxml.Interface{
				"lan":  {Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:01"},
				"own":  {User: true, Model: "virtio", MAC: "52:54:00:00:00:02"},
				"down": {Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:03", Down: true},
			}}
			build := func(port bool) string {
				is.GuestAgent = port
				text, err := domainxml.Build(is)
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			h := &unchanging{stored: build(c.stored), live: build(c.runs), state: host.State{Active: true, Responsive: true}}
			interfaces := map[string]attr.Value{}
			for key, i := range is.Interfaces {
				interfaces[key] = interfaceObject(i)
			}
			m := model{Interfaces: types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, interfaces)}
			m.Running, m.WaitFor = types.BoolValue(true), types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
				"addresses": keySet(c.addresses...), "agent": types.BoolValue(c.agent), "timeout": types.StringNull(),
			})
			var diags diag.Diagnostics
			m.await(t.Context(), h.manager(), &diags)
			var got []string
			for _, d := range diags {
				got = append(got, d.Summary())
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("it warns of (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitFor_AddressWithoutSource(t *testing.T) {
	for agent, refused := range map[types.Bool]bool{types.BoolNull(): true, types.BoolValue(true): false, types.BoolUnknown(): false} {
		m := with(map[string]attr.Value{"network": types.StringNull(), "user": types.BoolValue(true)})
		m.GuestAgent = agent
		m.waitAt(t, keySet("a", "b"))
		var diags diag.Diagnostics
		if checkWaitFor(t.Context(), m, &diags); diags.HasError() != refused {
			t.Errorf("guest_agent %s: %v", agent, diags)
		}
	}
}
