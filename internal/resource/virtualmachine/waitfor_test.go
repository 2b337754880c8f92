package virtualmachine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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

// inVain is a host whose machine never gets an address or an agent.
type inVain struct{ leftOver }

func (h *inVain) Addresses(context.Context, string, bool) map[string][]string { return nil }

func (h *inVain) AwaitEvery(ctx context.Context, _ time.Duration, _ string, done func(context.Context) (bool, error)) error {
	if end, err := done(ctx); end || err != nil {
		return err
	}
	return errors.New("in vain")
}

func (h *inVain) State(context.Context, string) (host.State, error) {
	return host.State{Active: true, Responsive: true}, nil
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
			h := &inVain{leftOver{stubborn: stubborn{oneDomain: oneDomain{stored: build(c.stored)}, live: build(c.runs)}}}
			interfaces := map[string]attr.Value{}
			for key, i := range is.Interfaces {
				interfaces[key] = interfaceObject(i)
			}
			m := model{Interfaces: types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, interfaces)}
			m.Running, m.WaitFor = types.BoolValue(true), types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
				"addresses": keySet(c.addresses...), "agent": types.BoolValue(c.agent), "timeout": types.StringNull(),
			})
			var diags diag.Diagnostics
			m.await(t.Context(), manager{log: quiet, host: h}, &diags)
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

// leased is a host whose network has a lease for a guest that is off, or that was saved with its memory.
type leased struct {
	oneDomain
	saved string
	end   int64
}

func (h *leased) SavedXML(context.Context, string) (string, error) { return h.saved, nil }
func (h *leased) Start(context.Context, string) error              { return nil }

func (h *leased) Leases(context.Context) (map[host.Lease]int64, error) {
	return map[host.Lease]int64{{MAC: "52:54:00:00:00:01", IP: "192.0.2.7"}: h.end}, nil
}

// A lease from before the boot counts once it is renewed. Not renewed for a while are those of a guest that goes on where it was saved, never those
// without end, and what an agent reports is of this run.
func TestWaitFor_LeaseOfRunBefore(t *testing.T) {
	for name, c := range map[string]struct {
		saved       string
		before, now int64
		agent       bool
		counts      bool
	}{
		"the same lease":         {before: 100, now: 100},
		"a renewed lease":        {before: 100, now: 200, counts: true},
		"a lease without end":    {counts: true},
		"a resumed guest":        {saved: "<domain/>", before: 100, now: 100, counts: true},
		"the answer of an agent": {before: 100, now: 100, agent: true, counts: true},
	} {
		h := &leased{saved: c.saved, end: c.before}
		m := manager{log: quiet, host: h, leases: map[host.Lease]int64{{MAC: "of an earlier boot"}: 1}}
		if err := m.boot(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		h.end = c.now
		is := domainxml.Machine{
			Interfaces: map[string]domainxml.Interface{"lan": {MAC: "52:54:00:00:00:01"}}, AgentConnected: c.agent,
			Addresses: map[string][]string{"lan": {"192.0.2.7"}},
		}
		if err := m.dropOldAddresses(t.Context(), &is); err != nil || len(is.Addresses["lan"]) == 1 != c.counts {
			t.Errorf("%s: the addresses are %v, %v", name, is.Addresses, err)
		}
	}
}
